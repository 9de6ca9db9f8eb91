// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/session"
	"github.com/triagemq/triagemq/internal/queue/state"
)

// Config.MaxBytes bounds more than bodies: a message of ten bytes takes ten times as
// much in memory and in records, and one with a session of its own fifty times as much.
// The numbers are close to what is measured.
const (
	// MessageOverhead is what each message counts beyond its body.
	MessageOverhead = 128
)

// GroupOverhead is what the first message of a session and fair key, or the state of a
// session, counts beyond MessageOverhead.
func GroupOverhead(session, key string) int64 { return entries.GroupCost(session, key) }

// Footprint is how many bytes of Config.MaxBytes are used up.
func (q *Queue) Footprint() int64 {
	return q.core.ByState.Bytes + q.core.Saved.Bytes + q.Counts().Total()*MessageOverhead + q.core.Index.Groups.Bytes + q.core.Sessions.Bytes
}

// Due returns by how much an arrival makes Settling larger at most, beside what every message
// does.
func (q *Queue) Due(a *Arrival) (bytes int) {
	names := len(a.Session) + len(a.Key)
	if !a.NotBefore.IsZero() {
		bytes += 2*state.ArrivalSize + names // it is a record more
	}
	if q.DeadLettersExpired() && q.lifeOf(a) > 0 {
		bytes += state.ExpirySize + names
	}
	return bytes
}

// StateFits reports whether a state of size bytes for a session stays below
// Config.MaxBytes.
func (q *Queue) StateFits(id string, size int) bool {
	grown := session.StateCost(id, Ref{At: 1, Size: uint32(size)})
	if s := q.core.Sessions.Find(id); s != nil {
		grown -= session.StateCost(id, s.State)
	}
	return grown <= 0 || q.core.Config.MaxBytes == 0 || q.Footprint()+grown <= q.core.Config.MaxBytes
}
