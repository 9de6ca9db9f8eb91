// SPDX-License-Identifier: Apache-2.0

package processor

import "github.com/triagemq/triagemq/client"

// backlog is the events of a partition that were fetched and not begun, in order. It is
// guarded by the pump's mu.
type backlog struct {
	parts  [][]*client.Received // as they came; none is empty
	events int
	bytes  int // of their bodies
}

// put adds events.
func (b *backlog) put(events []*client.Received) {
	if len(events) == 0 {
		return
	}
	b.parts = append(b.parts, events)
	b.events += len(events)
	b.bytes += sizeOf(events)
}

// first returns the event that is next.
func (b *backlog) first() (*client.Received, bool) {
	if len(b.parts) == 0 {
		return nil, false
	}
	return b.parts[0][0], true
}

// take removes up to limit events, whose numbers have no gap.
func (b *backlog) take(limit int) []*client.Received {
	part := b.parts[0]
	n := 1
	for n < min(len(part), limit) && part[n].SeqNo == part[n-1].SeqNo+1 {
		n++
	}
	if b.parts[0] = part[n:]; n == len(part) {
		b.parts[0] = nil
		b.parts = b.parts[1:]
	}
	b.events -= n
	b.bytes -= sizeOf(part[:n])
	return part[:n:n]
}

func sizeOf(events []*client.Received) (size int) {
	for _, e := range events {
		size += len(e.Body)
	}
	return size
}
