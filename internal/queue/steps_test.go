// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/ordering"
)

// step does one random thing to the queue and to the model.
func (p *player) step() {
	steps := []struct {
		weight int
		name   string
		do     func()
	}{
		{10, "enqueue", p.enqueue},
		{8, "take", p.take},
		{12, "settle", p.settle},
		{3, "take by number", p.takeSeq},
		{2, "return", p.giveBack},
		{1, "deadLetter", p.deadLetter},
		{2, "cancel", p.cancel},
		{1, "remove", p.remove},
		{2, "reclass", p.reclass},
		{1, "purge", p.purge},
		{1, "configure", p.configure},
		{1, "reorder", p.reorder},
		{4, "wait", p.wait},
		{1, "short", func() { p.m.short = !p.m.short }},
		{5, "snapshot", p.snapshot},
		{4, "session", p.session},
		{1, "state", p.state},
	}
	total := 0
	for _, s := range steps {
		total += s.weight
	}
	n := p.rnd.IntN(total)
	for _, s := range steps {
		if n -= s.weight; n < 0 {
			p.note("%s", s.name)
			s.do()
			break
		}
	}
	p.absorb()
}

func (p *player) wait() {
	p.now = p.now.Add(time.Duration(p.rnd.IntN(4000)) * time.Millisecond)
	p.tick()
}

func (p *player) sessionID() string { return fmt.Sprintf("s%d", p.rnd.IntN(4)) }

func (p *player) arrival() Arrival {
	a := Arrival{Body: p.body(1 + p.rnd.IntN(100)), Level: Level(p.rnd.IntN(5)), Class: Class(p.rnd.IntN(3))}
	if p.q.core.Config.Sessions {
		a.Session, a.InSession = p.sessionID(), true
	}
	if p.rnd.IntN(3) == 0 {
		a.Key = fmt.Sprintf("k%d", p.rnd.IntN(3))
	}
	if p.rnd.IntN(3) == 0 {
		a.MessageID = fmt.Sprintf("id%d", p.rnd.IntN(20))
	}
	if p.rnd.IntN(3) == 0 {
		a.TTL = time.Duration(1+p.rnd.IntN(20000)) * time.Millisecond
	}
	if p.rnd.IntN(5) == 0 {
		a.NotBefore = p.now.Add(time.Duration(p.rnd.IntN(8000)-1000) * time.Millisecond)
	} else if p.rnd.IntN(5) == 0 {
		a.At, a.Origin, a.Hops = p.now.Add(-time.Duration(p.rnd.IntN(30000))*time.Millisecond), 77, 1
	}
	if p.rnd.IntN(5) == 0 {
		a.OrderTime = p.now.Add(-time.Duration(p.rnd.IntN(60000)) * time.Millisecond)
	}
	if a.NotBefore.IsZero() && p.rnd.IntN(4) == 0 {
		a.Reason = p.body(20)
	}
	return a
}

func (p *player) enqueue() {
	as := make([]Arrival, 1+p.rnd.IntN(3))
	for i := range as {
		as[i] = p.arrival()
	}
	seqs := make([]SeqNo, len(as))
	if _, err := p.q.Admit(p.now, slices.Clone(as)); err != nil {
		p.fatalf("admit: %v", err)
	}
	if err := p.q.Enqueue(p.now, as, seqs, &p.out); err != nil {
		p.fatalf("enqueue: %v", err)
	}
	for i, want := range p.m.enqueue(p.now, as) {
		if seqs[i] != want {
			p.fatalf("enqueue %+v: number %d, want %d", as[i], seqs[i], want)
		}
	}
}

func (p *player) take() {
	p.tick() // what came back after its end is ready until then
	w := TakeOptions{ReceiveAndDelete: p.rnd.IntN(8) == 0, DurableLock: p.rnd.IntN(8) == 0}
	var want []*modelMessage
	if p.q.core.Config.Sessions {
		for _, id := range slices.Sorted(maps.Keys(p.m.holders)) {
			if first := p.m.first(id); first != nil {
				w.Session, want = p.m.holders[id], append(want, first)
				break
			}
		}
	} else {
		r := p.levelsWanted()
		w.MinLevel, w.MaxLevel = r.MinLevel, r.MaxLevel
		want = p.m.choices(p.now, levelRange{w.lowest(), w.highest()}, func(*modelMessage) bool { return true })
	}
	ready := p.q.HasReady(p.now, w)
	hold := w.ReceiveAndDelete && p.rnd.IntN(2) == 0
	d, ok := p.q.TakeOrLock(p.now, w, func(Ref) bool { return !hold }, &p.out)
	if ok != ready || ok != (len(want) > 0) {
		p.fatalf("take %+v: %t, ready %t, want one of %d", w, ok, ready, len(want))
	}
	if !ok {
		return
	}
	for _, x := range want {
		if x.seq == d.Seq {
			if !p.q.core.Config.Sessions { // a session was served when it was locked
				p.m.served(p.now, d.Level)
			}
			if hold { // locked without end, unless its session's lock has one
				p.m.hand(x)
				x.state, x.token, x.until = Locked, d.Token, p.now.AddDate(100, 0, 0)
				x.durable = false
				if p.q.core.Config.Sessions {
					x.until = p.m.ends[x.a.Session]
				}
				return
			}
			p.handed(d, x, w)
			return
		}
	}
	p.fatalf("take %+v by %+v: %+v, want one of %d, the first %+v", w, p.m.cfg.Order, d, len(want), *want[0])
}

// levelsWanted is what a receiver of some range of levels, or of all, asks for.
func (p *player) levelsWanted() (w TakeOptions) {
	if p.rnd.IntN(2) == 0 {
		w.MinLevel = Level(p.rnd.IntN(3))
		w.MaxLevel = w.MinLevel + Level(p.rnd.IntN(5))
	}
	return w
}

// handed checks a delivery and follows it in the model.
func (p *player) handed(d Delivery, want *modelMessage, w TakeOptions) {
	p.note("delivered %d %v", d.Seq, d.Token)
	if d.Seq != want.seq {
		p.fatalf("delivered %d, want %d", d.Seq, want.seq)
	}
	p.m.hand(want)
	if w.ReceiveAndDelete {
		p.m.remove(d.Seq)
		p.taken = append(p.taken, taken{d, want})
		return
	}
	want.deferred = want.state == Deferred
	want.state, want.token, want.until = Locked, d.Token, p.now.Add(p.m.cfg.LockFor)
	want.durable = w.DurableLock
	if p.q.core.Config.Sessions {
		want.until, want.durable = p.m.ends[want.a.Session], false
	}
	if d.Saved != want.saved {
		p.fatalf("message %d has state %v, want %v", d.Seq, d.Saved, want.saved)
	}
	if !d.LockedUntil.Equal(want.until) {
		p.fatalf("message %d is locked until %v, want %v", d.Seq, d.LockedUntil, want.until)
	}
}

func (p *player) pick(state State) *modelMessage {
	var of []*modelMessage
	for _, x := range p.m.messages {
		if x.state == state {
			of = append(of, x)
		}
	}
	if len(of) == 0 {
		return nil
	}
	return of[p.rnd.IntN(len(of))]
}

func (p *player) settle() {
	x := p.pick(Locked)
	if x == nil {
		if _, err := p.q.Complete(p.now, Token{Seq: 1, Nonce: 9}, &p.out); err == nil {
			p.fatalf("completed with a token that was never assigned")
		}
		return
	}
	var err error
	switch p.rnd.IntN(12) {
	case 8:
		at := p.now.Add(time.Duration(p.rnd.IntN(15000)-1000) * time.Millisecond)
		_, err = p.q.Retry(p.now, x.token, at, &p.out)
		p.m.retry(x, at, p.now)
	case 9:
		var until time.Time
		until, err = p.q.RenewDurably(p.now, x.token, &p.out)
		if !p.q.core.Config.Sessions {
			x.until, x.durable = p.now.Add(p.m.cfg.LockFor), true
		}
		if !until.Equal(x.until) {
			p.fatalf("renewed until %v, want %v", until, x.until)
		}
	case 10:
		x.saved = p.body(7)
		if p.rnd.IntN(5) == 0 {
			x.saved = Ref{}
		}
		err = p.q.Save(p.now, x.token, x.saved, &p.out)
		if e := p.q.Save(p.now, Token{Seq: x.seq, Nonce: 9}, p.body(7), &p.out); e == nil {
			p.fatalf("saved the state of message %d without its lock", x.seq)
		}
	case 0:
		_, err = p.q.Abandon(p.now, x.token, &p.out)
		p.m.fail(x)
	case 1:
		_, err = p.q.Release(p.now, x.token, &p.out)
		p.m.rest(x)
	case 2:
		_, err = p.q.Defer(p.now, x.token, &p.out)
		x.deferred = true
		p.m.fail(x)
	case 3:
		_, err = p.q.Reject(p.now, x.token, "why", "because", &p.out)
		p.m.dead = append(p.m.dead, x.seq)
		p.m.remove(x.seq)
	case 4:
		x.a.Body, x.a.Reason = p.body(50), Ref{}
		err = p.q.Rewrite(p.now, x.token, x.a.Body, &p.out)
	case 5:
		var until time.Time
		if x.durable {
			return // a restart does not know of it
		}
		until, err = p.q.Renew(p.now, x.token)
		if !p.q.core.Config.Sessions {
			x.until = p.now.Add(p.m.cfg.LockFor)
		}
		if !until.Equal(x.until) {
			p.fatalf("renewed until %v, want %v", until, x.until)
		}
	default:
		_, err = p.q.Complete(p.now, x.token, &p.out)
		p.m.remove(x.seq)
		if _, err := p.q.Complete(p.now, x.token, &p.out); err == nil {
			p.fatalf("completed message %d twice", x.seq)
		}
	}
	if err != nil {
		p.fatalf("settle %d: %v", x.seq, err)
	}
}

func (p *player) takeSeq() {
	seq := SeqNo(1 + p.rnd.IntN(int(p.m.last)+1))
	if x := p.pick(Deferred); x != nil && p.rnd.IntN(2) == 0 {
		seq = x.seq
	}
	x := p.m.find(seq)
	w := TakeOptions{}
	if x != nil {
		w.Session = p.m.holders[x.a.Session]
	}
	d, err := p.q.TakeSeq(p.now, seq, w, &p.out)
	want := error(nil)
	switch {
	case p.q.core.Config.Sessions && w.Session.Nonce == 0:
		want = ErrSessionLockLost
	case x == nil || x.state == Scheduled || x.state == Retrying:
		want = ErrNotFound
	case x.state == Locked:
		want = ErrLocked
	case p.m.outlived(x, p.now):
		want = ErrNotFound // it expires when it is asked for
		p.m.expire(x)
	}
	if !errors.Is(err, want) {
		p.fatalf("take %d: %v, want %v", seq, err, want)
	}
	if err == nil {
		p.handed(d, x, w)
	}
}

// giveBack returns a message that was received and deleted, or counts that it failed.
func (p *player) giveBack() {
	if len(p.taken) == 0 {
		return
	}
	i := p.rnd.IntN(len(p.taken))
	t := p.taken[i]
	p.taken = slices.Delete(p.taken, i, i+1)
	p.note("returned %d", t.d.Seq)
	t.x.token, t.x.until = Token{}, time.Time{}
	if p.rnd.IntN(4) > 0 {
		if err := p.q.Return(p.now, &t.d, &p.out); err != nil {
			p.fatalf("return %d: %v", t.d.Seq, err)
		}
		p.m.insert(t.x)
		if err := p.q.Return(p.now, &t.d, &p.out); !errors.Is(err, ErrNotAllowed) {
			p.fatalf("return %d twice: %v", t.d.Seq, err)
		}
		return
	}
	if err := p.q.ReturnFailed(p.now, &t.d, &p.out); err != nil {
		p.fatalf("return %d as failed: %v", t.d.Seq, err)
	}
	p.m.insert(t.x)
	p.m.fail(t.x)
}

func (p *player) deadLetter() {
	x := p.pick(State(p.rnd.IntN(5)))
	if x == nil {
		return
	}
	if x.state == Locked && p.rnd.IntN(2) == 0 {
		if err := p.q.DeadLetter(p.now, x.seq, Token{Seq: x.seq}, "why", "because", &p.out); !errors.Is(err, ErrLocked) {
			p.fatalf("deadLetter %d, which somebody else holds: %v", x.seq, err)
		}
		return
	}
	if err := p.q.DeadLetter(p.now, x.seq, x.token, "why", "because", &p.out); err != nil {
		p.fatalf("deadLetter %d: %v", x.seq, err)
	}
	p.m.dead = append(p.m.dead, x.seq)
	p.m.remove(x.seq)
}

func (p *player) cancel() {
	x, y := p.pick(Scheduled), p.pick(Scheduled) // perhaps the same
	if x == nil {
		return
	}
	if err := p.q.Cancel(p.now, []SeqNo{x.seq, p.m.last + 1}, &p.out); !errors.Is(err, ErrNotFound) || len(p.out.Records()) > 0 {
		p.fatalf("cancel %d and one that is not there: %v", x.seq, err)
	}
	if err := p.q.Cancel(p.now, []SeqNo{x.seq, y.seq, x.seq}, &p.out); err != nil {
		p.fatalf("cancel %d and %d: %v", x.seq, y.seq, err)
	}
	p.m.remove(x.seq)
	p.m.remove(y.seq)
}

func (p *player) remove() {
	if x := p.pick(State(p.rnd.IntN(5))); x != nil {
		err := p.q.Remove(p.now, x.seq, &p.out)
		if (err == nil) == (x.state == Locked) {
			p.fatalf("remove %d: %v", x.seq, err)
		}
		if err == nil {
			p.m.remove(x.seq)
		}
	}
}

func (p *player) reclass() {
	if x := p.pick(State(p.rnd.IntN(5))); x != nil {
		x.a.Level, x.a.Class, x.a.Key = Level(p.rnd.IntN(5)), Class(p.rnd.IntN(3)), fmt.Sprintf("k%d", p.rnd.IntN(3))
		if err := p.q.Reclassify(p.now, x.seq, Classification{Level: x.a.Level, Class: x.a.Class, Key: x.a.Key}, &p.out); err != nil {
			p.fatalf("reclass %d: %v", x.seq, err)
		}
	}
}

func (p *player) purge() {
	id := p.sessionID()
	arg := Purge{Before: p.now.Add(-10 * time.Second), Max: 1 + p.rnd.IntN(3)}
	if p.q.core.Config.Sessions {
		arg.Session = &id
	}
	want := 0
	for _, d := range peekAll(p.q, p.now, arg.Session) {
		if want < arg.Max && d.State != Locked && d.EnqueuedAt.Before(arg.Before) {
			p.m.remove(d.Seq)
			want++
		}
	}
	for !p.q.Purge(p.now, &arg, 1+p.rnd.IntN(5), &p.out) {
	}
	if arg.Gone != want {
		p.fatalf("purged %d, want %d", arg.Gone, want)
	}
}

func (p *player) configure() {
	cfg := p.q.Config()
	cfg.LockFor = time.Duration(5+5*p.rnd.IntN(3)) * time.Second
	cfg.MaxFailures = uint32(2 + p.rnd.IntN(3))
	if p.reorders && p.rnd.IntN(2) == 0 {
		cfg.Order = p.order()
	}
	p.q.Configure(p.now, cfg, &p.out)
	p.m.configure(cfg)
	p.settleOrder()
}

// reorder goes on with what configure began.
func (p *player) reorder() {
	p.q.Reorder(1 + p.rnd.IntN(5))
	p.settleOrder()
}

// settleOrder lets the model go over to the new order when the queue does. When that
// is, only the queue knows; it must be soon.
func (p *player) settleOrder() {
	if p.q.InForce() {
		p.m.reorder()
	}
}

// order makes up an order.
func (p *player) order() Order {
	pick := func(n int) int { return p.rnd.IntN(n) }
	return Order{
		Discipline: Discipline(pick(4)), AgingInterval: 17 * time.Second, AgingMaxLevel: Level(2 + pick(2)),
		Objective:  []time.Duration{5 * time.Second, time.Minute, 30 * time.Second, 0, 20 * time.Second},
		Weight:     []uint32{1, 2, 1 + uint32(pick(3))},
		Saturation: []Saturation{{}, {Waiting: 8}, {Waiting: 30, Oldest: 15 * time.Second}}[pick(3)],
		LevelOrder: ordering.LevelOrder(pick(3)), Fair: pick(3) > 0, DefaultShare: Share{Cap: uint32(3 + pick(2))},
	}
}

func (p *player) session() {
	if !p.q.core.Config.Sessions {
		return
	}
	id := p.sessionID()
	held := !p.m.ends[id].IsZero()
	switch p.rnd.IntN(4) {
	case 0:
		l, until, err := p.q.LockSession(p.now, id)
		if (err == nil) == held {
			p.fatalf("lock session %s: %v, held %t", id, err, held)
		}
		if err == nil {
			p.m.holders[id], p.m.ends[id] = l, until
		}
	case 1:
		w := p.levelsWanted()
		want := p.m.nextSessions(p.now, w)
		l, until, got := p.q.LockNextSession(p.now, w)
		right := got == (len(want) > 0)
		if got {
			right = slices.ContainsFunc(want, func(x *modelMessage) bool { return x.a.Session == l.ID })
			p.m.holders[l.ID], p.m.ends[l.ID] = l, until
			if right {
				p.m.served(p.now, want[0].a.Level)
			}
		}
		if !right {
			p.fatalf("next session: %q %t, want one of %d", l.ID, got, len(want))
		}
	case 2:
		if !held {
			return
		}
		until, err := p.q.RenewSession(p.now, p.m.holders[id])
		if err != nil {
			p.fatalf("renew session: %v", err)
		}
		p.m.ends[id] = until
		for _, x := range p.m.messages {
			if x.state == Locked && x.a.Session == id {
				x.until = until
			}
		}
	case 3:
		p.q.ReleaseSession(p.now, p.m.holders[id], &p.out)
		p.m.freeSession(id, (*model).rest)
	}
}

func (p *player) state() {
	id, state := p.sessionID(), p.body(9)
	if p.rnd.IntN(3) == 0 {
		state = Ref{}
	}
	p.q.SetSessionState(p.now, id, state, &p.out)
	if got, ok := p.q.SessionState(id); got != state || ok != (state != Ref{}) {
		p.fatalf("state of %s: %v %t, want %v", id, got, ok, state)
	}
}
