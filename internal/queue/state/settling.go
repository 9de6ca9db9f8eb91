// SPDX-License-Identifier: Apache-2.0

package state

import "github.com/triagemq/triagemq/internal/queue/entries"

// dues count the messages about which more than their settlement is yet to be written.
type dues struct {
	expiring      int64 // messages with a time to live
	expiringNames int64 // bytes of their sessions and fair keys, which a dead letter repeats
	arrivingNames int64 // of scheduled messages: the record of their arrival repeats them
}

// Bytes of records beside names.
const (
	// ArrivalSize is what a scheduled message takes in the record of its arrival.
	ArrivalSize = 128
	// ExpirySize is what it takes that a message becomes a dead letter because it expires,
	// in a group of its own.
	ExpirySize = 512
)

// noteDue adds a message in a state to dues, as often as times says; it may be minus one.
func (q *Core) noteDue(e *entries.Entry, s entries.State, times int64) {
	scheduled := s == entries.Scheduled
	if e.Life == 0 && !scheduled {
		return
	}
	g := &q.Index.Groups.All[e.Group]
	names := times * int64(len(g.Session)+len(g.Key))
	if e.Life != 0 {
		q.dues.expiring += times
		q.dues.expiringNames += names
	}
	if scheduled {
		q.dues.arrivingNames += names
	}
}

// DeadLettersExpired reports whether messages that expire become dead letters.
func (q *Core) DeadLettersExpired() bool {
	return q.Config.DeadLetterExpired && !q.Config.DeadLetterQueue
}

// ExpirySpace is how much of Settling is for messages that become dead letters because they
// expire, if they do.
func (q *Core) ExpirySpace() uint64 {
	return uint64(ExpirySize*q.dues.expiring + q.dues.expiringNames)
}

// Settling implements [machine.Machine]: a message is settled with a record of its own, its
// fair key may have to be started for that, and if it is scheduled it must first arrive. One
// that expires may have to become a dead letter: it keeps others from being delivered until then.
// The release of a durable lock has a record, too.
func (q *Core) Settling() (records, bytes uint64) {
	c := q.Counts()
	names := uint64(max(0, q.Index.Groups.Bytes))
	records = uint64(c.Total()+c.Scheduled) + uint64(q.Locks.DurableCount()) // which may be released first
	if keys := q.Index.KeyCount(); keys > 1 {
		records += uint64(keys - 1)
	}
	states, ids := q.Sessions.States() // each can be cleared
	bytes = names + ids + ArrivalSize*uint64(c.Scheduled) + uint64(q.dues.arrivingNames)
	if q.DeadLettersExpired() {
		bytes += q.ExpirySpace()
	}
	return records + states, bytes
}
