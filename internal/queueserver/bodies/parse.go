// SPDX-License-Identifier: Apache-2.0

package bodies

import (
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// AppendReads adds what has to be read of a message to reads: its body, and its
// reason if it has one.
func AppendReads(reads []journal.Read, d *queue.Delivery) []journal.Read {
	reads = append(reads, engine.ReadOf(d.Body))
	if d.Reason != (queue.Ref{}) {
		reads = append(reads, engine.ReadOf(d.Reason))
	}
	return reads
}

// Parse returns the message in what AppendReads had read. If the body of a dead letter
// cannot be read it returns a placeholder, and damaged is true. ErrFreed may mean that
// the body was moved.
func Parse(reads []journal.Read, deadLetter bool) (m *message.Message, damaged bool, err error) {
	m, err = ParseOne(&reads[0])
	var reason *message.Message
	if len(reads) > 1 {
		var reasonErr error
		reason, reasonErr = ParseOne(&reads[1])
		if errors.Is(reasonErr, journal.ErrFreed) || errors.Is(reasonErr, journal.ErrClosed) {
			return nil, false, reasonErr
		}
	}
	switch {
	case err == nil && reason != nil:
		m, err = withReason(m, reason)
		return m, false, err
	case err == nil, errors.Is(err, journal.ErrFreed), errors.Is(err, journal.ErrClosed), !deadLetter:
		return m, false, err
	}
	return Placeholder(reason), true, nil
}

// ParseOne returns the message in a body that was read.
func ParseOne(r *journal.Read) (*message.Message, error) {
	raw, err := engine.Body(r)
	if err != nil {
		return nil, err
	}
	m, err := message.ParseStored(raw)
	if err != nil {
		return nil, fmt.Errorf("parse body at %d: %w", r.At, err)
	}
	return m, nil
}
