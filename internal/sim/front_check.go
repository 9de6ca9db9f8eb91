// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"

	"github.com/triagemq/triagemq/internal/queue"
)

// compare advances the model to now and compares everything.
func (f *front) compare() {
	for _, l := range f.lanes {
		l.q.mayBeEvaluated() // before time advances
	}
	f.now = f.life.Now()
	for _, l := range f.lanes {
		l.q.tick(f.now, 0, func(*modelMessage) bool { return true })
	}
	f.served()
	f.idle()
	for _, l := range f.lanes {
		f.compareLane(f.life, l)
		got := f.measured(f.life, l)
		for name := range maps.Keys(l.counts) {
			if got[name] != l.counts[name] {
				f.failf("%s: class %q: measured %+v, want %+v", l.name, name, got[name], l.counts[name])
			}
		}
	}
}

// compareLane compares the messages of a queue in some broker with the model:
// the same messages, with the same age, and the class and level of the policy.
func (f *front) compareLane(b *life, l *lane) {
	ds, err := b.Peek(f.ctx, l.name, 0, 1000, nil)
	if err != nil {
		f.failf("%s: peek: %v", l.name, err)
	}
	if len(ds) != len(l.q.messages) {
		f.failf("%s: %d messages, want %d", l.name, len(ds), len(l.q.messages))
	}
	for i, m := range l.q.messages {
		got, want := seen(ds[i].Delivery), expected(m)
		if b != f.life { // another process: nothing is locked
			want.state = m.resting()
			to := l.rules.classOf(factsOf(m.body))
			want.level, want.class, want.key = to.Level, to.Class, to.Key
		}
		if ds[i].Seq != m.seq || got != want {
			f.failf("%s: message %d is %+v, want %d %+v", l.name, ds[i].Seq, got, m.seq, want)
		}
	}
}

// measured returns what a broker has counted of a queue.
func (f *front) measured(b *life, l *lane) map[string]tally {
	o, err := b.Objectives(f.ctx, l.name)
	if err != nil {
		f.failf("%s: objectives: %v", l.name, err)
	}
	all := map[string]tally{}
	for _, c := range o.Classes {
		if c.Class == 0 || l.rules.class(queue.Class(c.Class)) != nil {
			all[c.Name] = tally{c.Arrived.Total, c.Completed.Total, c.Refused.Total, c.Evicted.Total}
		}
	}
	return all
}
