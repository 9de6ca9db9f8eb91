// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/vfs"
)

// send sends a batch, of which all are stored or none.
func (f *front) send(l *lane) {
	var bodies []*message.Message
	var as []queue.Arrival
	var ms []*modelMessage
	for range f.pick(1, 1, 2, 4) {
		m := f.body()
		to := f.classify(l.rules, m)
		bodies = append(bodies, m)
		as = append(as, queue.Arrival{Level: to.Level, Class: to.Class, Key: to.Key})
		ms = append(ms, &modelMessage{level: to.Level, class: to.Class, key: to.Key, body: m, size: m.Size()})
	}
	asked, refuse := l.admitter.decide(f.now, l.q, ms)
	s, err := f.life.OpenSender(l.name, broker.SenderOptions{})
	if err != nil {
		f.failf("%s: %v", l.name, err)
	}
	answer := make(chan error, 1)
	s.Send(bodies, func(err error) { answer <- err })
	err = <-answer
	f.event("send %s %d %v", l.name, len(bodies), err)
	refused, ok := errors.AsType[*broker.ThrottledError](err)
	if ok != refuse || err != nil && !ok {
		f.failf("%s: policy %s: got %v, want refused %t", l.name, l.rules.text, err, refuse)
	}
	if refuse {
		f.result.Refused++
		l.count(refused.Class, func(t *tally) { t.refused += uint64(len(bodies)) })
		return
	}
	asked.use()
	for _, m := range asked.evict {
		f.result.Evicted++
		l.count(l.className(m.class), func(t *tally) { t.evicted++ })
		l.q.remove(m)
	}
	for _, a := range as {
		l.count(l.className(a.Class), func(t *tally) { t.arrived++ })
	}
	l.q.enqueue(f.now, 0, as, bodies)
}

func (l *lane) className(n queue.Class) string {
	if c := l.rules.class(n); c != nil {
		return c.name
	}
	return ""
}

func (l *lane) count(class string, change func(*tally)) {
	t := l.counts[class]
	change(&t)
	l.counts[class] = t
}

// settle settles a locked message.
func (f *front) settle(l *lane) {
	var held []*modelMessage
	for _, m := range l.q.messages {
		if m.state == queue.Locked {
			held = append(held, m)
		}
	}
	if len(held) == 0 {
		return
	}
	m := held[f.rng.IntN(len(held))]
	v := []broker.Disposition{broker.Complete, broker.Complete, broker.Abandon, broker.Release}[f.rng.IntN(4)]
	f.event("settle %s %d %d", l.name, m.seq, v)
	if err := f.life.Settle(f.ctx, l.name, []queue.Token{{Seq: m.seq, Nonce: m.nonce}}, broker.Outcome{Disposition: v}); err != nil {
		f.failf("%s: settle %d: %v", l.name, m.seq, err)
	}
	switch v {
	case broker.Complete:
		l.count(l.className(m.class), func(t *tally) { t.completed++ })
		l.q.remove(m)
	case broker.Abandon:
		l.q.fail(m, 0)
	case broker.Release:
		l.q.rest(m)
	}
}

// change sets another policy of a queue: stored messages are reclassified and
// keep their age. A crash meanwhile leaves the old policy or the new one, and a
// reclassification that was begun is completed.
func (f *front) change(l *lane) {
	old, next := l.rules, f.counting()
	f.event("policy %s %s", l.name, next.text)
	var images []*vfs.Mem
	look, seed := f.chance(2), f.rng.Uint64()
	if look {
		f.life.fault.Before(func(op vfs.Op, _ string) error {
			if op == vfs.OpSync && len(images) < 8 {
				images = append(images, f.life.disk.CrashClone(seed))
			}
			return nil
		})
	}
	state, err := f.life.SetPolicy(f.ctx, l.name, []byte(next.text))
	f.life.fault.Before(nil)
	if err != nil || !state.Applied {
		f.failf("%s: policy %s: %v", l.name, next.text, err)
	}
	l.rules = next
	cfg := l.q.cfg
	cfg.Order = next.real.Order()
	l.q.configure(cfg, 0)
	l.q.goOver() // it is short enough for one step
	for _, m := range l.q.messages {
		to := next.classOf(factsOf(m.body))
		m.level, m.class, m.key = to.Level, to.Class, to.Key
	}
	l.admitter.replace(next)
	for name := range l.counts {
		if name != "" && !slices.ContainsFunc(next.classes, func(c class) bool { return c.name == name }) {
			l.past[name] = l.past[name].plus(l.counts[name])
			delete(l.counts, name)
		}
	}
	if len(images) > 0 {
		f.checkCrash(images[seed%uint64(len(images))], l, old)
	}
}

// checkCrash recovers what a crash during a change of policy left, waits until
// it is done, and checks that everything follows the old policy or everything
// the new one.
func (f *front) checkCrash(image *vfs.Mem, l *lane, old *rules) {
	f.result.CrashChecks++
	other := f.open(image)
	defer other.stop()
	f.quiet()
	state, err := other.Policy(l.name)
	if err != nil {
		f.failf("%s: %v", l.name, err)
	}
	r := l.rules
	if old.matches(state) {
		r = old
	}
	if !r.matches(state) || !state.Applied {
		f.failf("%s: after a crash the policy is %s, applied %t", l.name, state.Policy, state.Applied)
	}
	was := *l
	was.rules = r
	f.compareLane(other, &was)
}

// matches reports whether a policy is the one of these rules.
func (r *rules) matches(state broker.PolicyState) bool {
	var own, other any
	return json.Unmarshal([]byte(r.text), &own) == nil && json.Unmarshal(state.Policy, &other) == nil &&
		reflect.DeepEqual(own, other)
}
