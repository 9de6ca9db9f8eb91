// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"time"

	"github.com/triagemq/triagemq/worker/internal/slots"
)

// The credit of a receiver that fetches ahead does not say that a slot is free. So free slots
// that get nothing from the buffer wait at a receiver that does not fetch ahead. For that one
// the broker takes back what other pools have fetched and not started, and what has come into
// the buffer of this one meanwhile.

const (
	// bufferWait is how long free slots wait for the buffer alone.
	bufferWait = 50 * time.Millisecond
	// directWait is how long they wait beside it before they look at it again.
	directWait = 3 * time.Second
)

// directChannel has the receiver beside the buffer.
const directChannel = peekChannel + 1

// nextBuffered returns up to n messages that were fetched ahead, or else of the receiver
// beside the buffer.
func (s *supply) nextBuffered(ctx context.Context, buffer receiverKey, n int) ([]delivery, error) {
	direct := buffer
	direct.channel = directChannel
	for {
		// With all the time it takes: here trouble shows.
		if got, err := s.poll(ctx, buffer, n); len(got) > 0 || err != nil {
			return got, err
		}
		if got, err := s.waitBriefly(ctx, buffer, n, bufferWait); len(got) > 0 || err != nil {
			return got, err
		}
		if _, err := s.receiver(ctx, direct); err != nil {
			return nil, err
		}
		if got, err := s.waitBriefly(ctx, direct, n, directWait); len(got) > 0 || err != nil {
			return got, err
		}
	}
}

// waitBriefly is wait for a time. It returns nothing when the time is over.
func (s *supply) waitBriefly(ctx context.Context, k receiverKey, n int, d time.Duration) ([]delivery, error) {
	brief, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	got, err := s.wait(brief, k, n)
	if err != nil && brief.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	return got, err
}

// isBuffer reports whether a receiver fetches ahead.
func (s *supply) isBuffer(k receiverKey) bool { return s.buffer > 0 && k.channel == slots.Main }
