// SPDX-License-Identifier: Apache-2.0

package queue

// What a queue holds beyond the bodies counts toward Config.MaxBytes as well: a
// message of ten bytes takes ten times as much in memory and in records, and one with
// a session of its own fifty times as much. The numbers are about what is measured.
const (
	// MessageOverhead is what each message counts beyond its body.
	MessageOverhead = 128
	// groupOverhead is what a session or fair key counts beyond its name, of which
	// there are several copies.
	groupOverhead = 512
	nameCopies    = 3
)

// GroupOverhead is what the first message of a session and fair key, or the state of a
// session, counts beyond MessageOverhead.
func GroupOverhead(session, key string) int64 {
	return groupOverhead + nameCopies*int64(len(session)+len(key))
}

// Footprint is how many bytes of Config.MaxBytes are used up.
func (q *Queue) Footprint() int64 {
	return q.counts.Bytes + q.Counts().Total()*MessageOverhead + q.index.groups.bytes + q.sessions.bytes
}

// stateCost is what the state of a session counts.
func stateCost(id string, state Ref) int64 {
	if state == (Ref{}) {
		return 0
	}
	return int64(state.Size) + GroupOverhead(id, "")
}

// StateFits reports whether the queue has room for a state of size bytes for a
// session.
func (q *Queue) StateFits(id string, size int) bool {
	grown := stateCost(id, Ref{At: 1, Size: uint32(size)})
	if n, ok := q.sessions.byID[id]; ok {
		grown -= stateCost(id, q.sessions.all[n].state)
	}
	return grown <= 0 || q.cfg.MaxBytes == 0 || q.Footprint()+grown <= q.cfg.MaxBytes
}
