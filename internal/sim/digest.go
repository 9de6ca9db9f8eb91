// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// sum represents the state of a shard as a crash must leave it: without volatile locks.
type sum = [sha256.Size]byte

// version is a state that a shard had at a time. What waits for a retry does so until its
// time, without a record of the end: a recovered state is compared as of that time.
type version struct {
	sum
	at time.Time
}

// The functions below spell a state out, the same way for the model and for what
// a recovery found.

func spellEntity(b *bytes.Buffer, d queueserver.Definition) {
	fmt.Fprintf(b, "entity %d %q %t published %d\n", d.ID, d.Name, d.Sessions, d.Published)
	for _, raw := range [...][]byte{d.Meta, d.Note} {
		b.Write(binary.AppendUvarint(b.AvailableBuffer(), uint64(len(raw))))
		b.Write(raw)
	}
}

func spellQueue(b *bytes.Buffer, cfg queue.Config, last queue.SeqNo) {
	fmt.Fprintf(b, "queue %+v last %d\n", cfg, last)
}

func spellMessage(b *bytes.Buffer, m *modelMessage, now time.Time) {
	notBefore, state := int64(0), m.resting()
	switch {
	case state == queue.Retrying && !m.notBefore.After(now):
		state = queue.Ready
	case state == queue.Scheduled || state == queue.Retrying:
		notBefore = m.notBefore.UnixNano()
	}
	lock, until := uint64(0), int64(0)
	if m.durable {
		lock, until = m.nonce, m.logged.UnixNano()
	}
	line := b.AvailableBuffer()
	for _, n := range [...]uint64{
		uint64(m.seq), uint64(m.origin), uint64(m.level), uint64(m.class), uint64(state), uint64(m.failures),
		uint64(m.enqueued.UnixNano()), uint64(m.since.UnixNano()), uint64(m.life), uint64(notBefore),
		uint64(m.savedSize), lock, uint64(until),
	} {
		line = binary.AppendUvarint(line, n)
	}
	line = strconv.AppendQuote(strconv.AppendBool(strconv.AppendQuote(line, m.session), m.inSession), m.key)
	b.Write(append(line, m.sum[:]...))
}

func spellState(b *bytes.Buffer, id, state string) { fmt.Fprintf(b, "state %q %q\n", id, state) }

// digest sums up the queue as of now, again only if it has changed, or a wait has ended.
func (q *modelQueue) digest() sum {
	now := *q.now
	if !q.dirty && !now.Before(q.sumFrom) && (q.sumUntil.IsZero() || now.Before(q.sumUntil)) {
		return q.sum
	}
	q.sumFrom, q.sumUntil = time.Time{}, time.Time{}
	for _, m := range q.messages {
		switch at := m.notBefore; {
		case m.state != queue.Retrying:
		case !at.After(now):
			q.sumFrom = later(q.sumFrom, at)
		case q.sumUntil.IsZero() || at.Before(q.sumUntil):
			q.sumUntil = at
		}
	}
	var b bytes.Buffer
	spellQueue(&b, q.cfg, q.last)
	for _, m := range q.messages {
		spellMessage(&b, m, now)
	}
	fmt.Fprintf(&b, "started %q\n", q.known())
	for _, id := range slices.Sorted(maps.Keys(q.states)) {
		spellState(&b, id, q.states[id])
	}
	q.sum, q.dirty = sha256.Sum256(b.Bytes()), false
	return q.sum
}

// digest sums up the shard.
func (h *shardSim) digest() sum {
	var b bytes.Buffer
	for _, e := range h.sorted() {
		spellEntity(&b, e.Definition)
		for _, q := range e.parts {
			s := q.digest()
			b.Write(s[:])
		}
	}
	return sha256.Sum256(b.Bytes())
}
