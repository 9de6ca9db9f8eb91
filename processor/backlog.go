// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"time"

	"github.com/triagemq/triagemq/client"
)

// stored is events as the hub has stored them: an event costs little more than its bytes until
// it is taken. See [client.StoredEvents].
type stored interface {
	Len() int
	Size() int
	SeqNo() client.SeqNo
	Enqueued() time.Time
	Take(ctx context.Context, to []*client.Received, limit int) []*client.Received
}

// backlog is the events of a partition that were fetched and not begun, in order. It is
// guarded by the pump's mu, but work alone takes events of the first part, without it.
type backlog struct {
	parts  []stored // as they came; none is empty
	events int
	bytes  int       // of all parts
	since  time.Time // when the first event was enqueued; zero: there is none
}

// put adds events.
func (b *backlog) put(s stored) {
	if s.Len() == 0 {
		return
	}
	b.parts = append(b.parts, s)
	b.events += s.Len()
	b.bytes += s.Size()
	if len(b.parts) == 1 {
		b.since = s.Enqueued()
	}
}

// first returns the events that are next; nil if there are none.
func (b *backlog) first() stored {
	if len(b.parts) == 0 {
		return nil
	}
	return b.parts[0]
}

// took notes that events of the first part were taken. It returns how many bytes are free.
func (b *backlog) took(events int) (freed int) {
	b.events -= events
	if first := b.parts[0]; first.Len() == 0 {
		freed = first.Size()
		b.parts[0] = nil
		b.parts = b.parts[1:]
		b.bytes -= freed
	}
	if b.since = (time.Time{}); len(b.parts) > 0 {
		b.since = b.parts[0].Enqueued()
	}
	return freed
}

// drop forgets all events. It returns how many bytes are free.
func (b *backlog) drop() (freed int) {
	freed = b.bytes
	*b = backlog{}
	return freed
}
