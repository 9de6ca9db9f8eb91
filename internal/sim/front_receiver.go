// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/queue"
)

// waits returns the messages that may be delivered next to a receiver with
// these options.
func (f *front) waits(l *lane, accepts func(*modelMessage) bool) []*modelMessage {
	return l.q.choices(f.now, accepts)
}

// modelReceiver is a receiver over one queue or several.
type modelReceiver struct {
	f     *front
	set   *broker.MultiReceiver
	rule  broker.SourceSelection
	lanes []*lane
	from  queue.Level
	to    queue.Level // zero is any
	total uint64      // that it may have
	given uint64

	got []arrival // without a lock: it is read when all goroutines are blocked
}

type arrival struct {
	source int
	d      broker.Delivery
}

// Deliver implements broker.SetSink.
func (k *modelReceiver) Deliver(source int, d broker.Delivery) {
	k.got = append(k.got, arrival{source, d})
}

// Drained implements broker.SetSink.
func (k *modelReceiver) Drained() {}

// Ended implements broker.SetSink.
func (k *modelReceiver) Ended(err error) { k.got = append(k.got, arrival{-1, broker.Delivery{}}) }

func (k *modelReceiver) accepts(m *modelMessage) bool {
	return m.level >= k.from && (k.to == 0 || m.level <= k.to)
}

// receive opens a receiver, or adds credit to the open one.
func (f *front) receive() {
	if f.receiver == nil {
		k := &modelReceiver{f: f, rule: broker.SourceSelection(f.rng.IntN(2))}
		var names []string
		for _, i := range f.rng.Perm(len(f.lanes))[:1+f.rng.IntN(len(f.lanes))] {
			k.lanes = append(k.lanes, f.lanes[i])
			names = append(names, f.lanes[i].name)
		}
		if f.chance(3) {
			k.from = queue.Level(f.rng.IntN(4))
			k.to = k.from + queue.Level(f.rng.IntN(4))
			for _, l := range k.lanes {
				l.q.turns.unjust = true
			}
		}
		set, err := f.life.OpenSet(f.ctx, names, k.rule, broker.ReceiverOptions{MinLevel: k.from, MaxLevel: k.to}, k)
		if err != nil {
			f.failf("open a set of %v: %v", names, err)
		}
		f.event("open %v by %d from %d to %d", names, k.rule, k.from, k.to)
		k.set, f.receiver = set, k
	}
	k := f.receiver
	k.total += uint64(f.pick(1, 1, 2, 5))
	k.set.SetDeliveryLimit(k.total)
}

// leave closes the receiver.
func (f *front) leave() {
	if f.receiver == nil {
		return
	}
	f.quiet()
	f.served()
	f.receiver.set.Close()
	f.receiver = nil
	f.quiet()
}

// served checks the deliveries to the receiver, one after the other.
func (f *front) served() {
	k := f.receiver
	if k == nil {
		return
	}
	got := k.got
	k.got = nil
	for _, a := range got {
		f.result.Takes++
		k.given++
		if a.source < 0 {
			f.failf("the receiver ended")
		}
		l := k.lanes[a.source]
		f.event("take %s %d", l.name, a.d.Seq)
		m := l.q.find(a.d.Seq)
		if m == nil || !slices.Contains(f.waits(l, k.accepts), m) {
			f.failf("%s: message %d was delivered and is not the next\n%s", l.name, a.d.Seq, l.q.why(f.now, &modelMessage{level: a.d.Level, key: a.d.Key}))
		}
		for i, other := range k.lanes {
			if i != a.source && k.passedOver(f.waits(other, k.accepts), i, a.source, m) {
				f.failf("%s: message %d at level %d was delivered, and %s should have been served\n%s",
					l.name, m.seq, m.level, other.name, other.q.why(f.now, m))
			}
		}
		if err := l.q.served(f.now, m, false); err != nil {
			f.failf("%s: message %d: %v", l.name, m.seq, err)
		}
		l.q.hand(m)
		l.q.change()
		m.state, m.nonce, m.until = queue.Locked, a.d.Token.Nonce, f.now.Add(laneLock)
	}
}

// passedOver reports whether a next message of another queue should have been
// delivered before m, by the receiver's source selection.
func (k *modelReceiver) passedOver(next []*modelMessage, at, source int, m *modelMessage) bool {
	if len(next) == 0 {
		return false
	}
	if k.rule == broker.ByOrder {
		return at < source
	}
	return !slices.ContainsFunc(next, func(o *modelMessage) bool {
		return o.level < m.level || o.level == m.level && source < at
	})
}

// idle checks that no message waits while the receiver has credit.
func (f *front) idle() {
	k := f.receiver
	if k == nil || k.given == k.total {
		return
	}
	for _, l := range k.lanes {
		for _, m := range f.waits(l, k.accepts) {
			f.failf("%s: message %d waits for a receiver that has credit", l.name, m.seq)
		}
	}
}
