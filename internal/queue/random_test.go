// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

// The random tests give the same commands to a queue and to the model, replay
// what the queue wrote into other queues, and want all of them to agree.

// seeds is how many games are played of each kind; make sim plays more.
var seeds = flag.Uint64("seeds", defaultSeeds, "how many seeds to play of each order")

var epochStart = time.Unix(1_700_000_000, 0).UTC()

// player is a queue under test with everything that watches it.
type player struct {
	t   *testing.T
	rnd *rand.Rand
	now time.Time
	q   *Queue
	m   *model
	out Effects

	log    [][]byte // all records
	live   map[Ref]int
	nextAt uint64
	dead   []SeqNo

	taken   []taken          // received and deleted, and not returned
	snap    machine.Snapshot // the snapshot being written
	began   int              // where it began in log
	twin    *Queue           // replays log as it grows
	twinAt  int
	history []string

	reorders bool // configure changes the order, too
}

// taken is a message that was received and deleted.
type taken struct {
	d Delivery
	x *modelMessage
}

func newPlayer(t *testing.T, seed uint64, cfg Config) *player {
	p := &player{t: t, rnd: rand.New(rand.NewPCG(seed, 7)), now: epochStart, live: map[Ref]int{}}
	p.q, p.m, p.twin = New(cfg, 1), newModel(cfg), New(cfg, 2)
	return p
}

func (p *player) fatalf(format string, args ...any) {
	p.t.Helper()
	for _, h := range p.history[max(0, len(p.history)-25):] {
		p.t.Log(h)
	}
	p.t.Fatalf(format, args...)
}

func (p *player) note(format string, args ...any) {
	p.history = append(p.history, p.now.Sub(epochStart).String()+" "+fmt.Sprintf(format, args...))
}

// absorb takes over what the last command did.
func (p *player) absorb() {
	p.t.Helper()
	for _, rec := range p.out.Records() {
		p.log = append(p.log, slices.Clone(rec))
	}
	for _, r := range p.out.Added {
		p.live[r]++
	}
	for _, r := range p.out.Freed {
		p.live[r]--
		if p.live[r] == 0 {
			delete(p.live, r)
		}
	}
	for _, d := range p.out.DeadLettered {
		p.dead = append(p.dead, d.Seq)
	}
	p.out.Reset()
}

func (p *player) tick() {
	tick := p.q.Tick
	if p.m.short {
		tick = p.q.TickShort
	}
	for tick(p.now, &p.out) {
	}
	p.m.tick(p.now)
	p.absorb()
}

// verify compares the queue with the model and with its twin.
func (p *player) verify() {
	p.t.Helper()
	p.m.forget()
	if err := p.q.Check(); err != nil {
		p.fatalf("%v", err)
	}
	if got, want := p.q.Counts(), p.m.counts(); got != want {
		p.fatalf("counts: got %+v, want %+v", got, want)
	}
	slices.Sort(p.dead)
	slices.Sort(p.m.dead)
	if !slices.Equal(p.dead, p.m.dead) {
		p.fatalf("dead letters: got %v, want %v", p.dead, p.m.dead)
	}
	p.verifyPeek()
	p.verifySession()
	p.verifyRefs()
	var out Effects
	for ; p.twinAt < len(p.log); p.twinAt++ {
		if err := p.twin.Replay(p.log[p.twinAt], &out.Effects); err != nil {
			p.fatalf("replay of %x: %v", p.log[p.twinAt], err)
		}
	}
	if p.twin.Restored() { // it may have begun inside a snapshot
		p.same(p.twin, "replay of everything")
	}
}

func (p *player) same(other *Queue, how string) {
	p.t.Helper()
	if err := other.Check(); err != nil {
		p.fatalf("%s: %v", how, err)
	}
	if p.q.StateHash(p.now) != other.StateHash(p.now) {
		got, want := peekAll(other, p.now, nil), peekAll(p.q, p.now, nil)
		for i := range min(len(got), len(want)) {
			got[i].FirstDelivery = want[i].FirstDelivery // a restart forgets it
			if want[i].State == Ready && got[i].State == Retrying && !got[i].NotBefore.After(p.now) {
				got[i].State, got[i].NotBefore = Ready, time.Time{} // a restart finds that out by the clock
			}
			if got[i] != want[i] && (want[i].State != Locked || got[i].Seq != want[i].Seq) {
				p.fatalf("%s:\ngot  %+v\nwant %+v", how, got[i], want[i])
			}
		}
		p.fatalf("%s gives another queue: %d messages, want %d", how, len(got), len(want))
	}
	for _, x := range p.m.messages {
		if x.state == Locked && x.durable != other.LockValid(p.now, x.token) {
			p.fatalf("%s: the token of message %d is valid: %t, want %t", how, x.seq, !x.durable, x.durable)
		}
	}
}

// peekAll returns all messages of a session, or all there are.
func peekAll(q *Queue, now time.Time, session *string) []Delivery {
	ds, _ := q.Peek(now, Peek{Max: math.MaxInt, Session: session})
	return ds
}

func (p *player) verifyPeek() {
	p.t.Helper()
	got := peekAll(p.q, p.now, nil)
	want := slices.SortedFunc(slices.Values(p.m.messages), func(a, b *modelMessage) int { return int(a.seq) - int(b.seq) })
	if len(got) != len(want) {
		p.fatalf("peek: %d messages, want %d", len(got), len(want))
	}
	for i, d := range got {
		w := want[i]
		if d.Seq != w.seq || d.State != w.state || d.Failures != w.failures || d.Level != w.a.Level ||
			d.Body != w.a.Body || d.Reason != w.a.Reason || d.Session != w.a.Session || d.Key != w.a.Key || d.Origin != w.a.Origin ||
			d.Saved != w.saved || w.state == Retrying && !d.NotBefore.Equal(w.retryAt) ||
			!d.NotBefore.Equal(w.notBefore) && w.state == Scheduled ||
			w.state != Scheduled && (!d.EnqueuedAt.Equal(w.enqueued) || !w.since.Equal(w.enqueued) && !d.OrderTime.Equal(w.since)) {
			p.fatalf("peek: got %+v, want %+v", d, *w)
		}
	}
}

// verifySession compares what a walk in small steps finds of one session.
func (p *player) verifySession() {
	p.t.Helper()
	id, first := p.sessionID(), SeqNo(p.rnd.IntN(int(p.m.last)+2))
	var got, want []SeqNo
	for next := first; ; {
		var ds []Delivery
		ds, next = p.q.Peek(p.now, Peek{From: next, Max: 1 + p.rnd.IntN(3), Visits: 1 + p.rnd.IntN(4), Session: &id})
		for _, d := range ds {
			got = append(got, d.Seq)
		}
		if next == 0 {
			break
		}
	}
	for _, x := range p.m.messages {
		if x.a.InSession && x.a.Session == id && x.seq >= first {
			want = append(want, x.seq)
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		p.fatalf("peek of session %s from %d: %v, want %v", id, first, got, want)
	}
}

// verifyRefs checks that what was placed and not freed is what is needed.
func (p *player) verifyRefs() {
	p.t.Helper()
	need := map[Ref]int{}
	machine.AllRefs(p.q, func(r Ref) { need[r]++ })
	if len(need) != len(p.live) {
		p.fatalf("%d bodies are needed, %d placed and not freed", len(need), len(p.live))
	}
	for r, n := range need {
		if p.live[r] != n {
			p.fatalf("body %v is needed %d times, placed %d times more than freed", r, n, p.live[r])
		}
	}
}

// snapshot writes the next part of a snapshot and, at its end, tries it.
func (p *player) snapshot() {
	if p.snap == nil {
		p.snap, p.began = p.q.Snapshot(), len(p.log)
	}
	move := func(r Ref) (Ref, bool) {
		if p.rnd.IntN(4) > 0 {
			return r, false
		}
		to := p.body(int(r.Size))
		for _, x := range p.m.messages {
			if x.a.Body == r {
				x.a.Body = to
			}
			if x.a.Reason == r {
				x.a.Reason = to
			}
			if x.saved == r {
				x.saved = to
			}
		}
		return to, true
	}
	done := p.snap.Step(items(1+p.rnd.IntN(4)), move, &p.out.Effects)
	p.absorb()
	if !done {
		return
	}
	p.snap = nil
	fresh := New(Config{}, 3)
	p.restoreFrom(fresh, p.began)
	p.same(fresh, "snapshot and replay")
	p.twin, p.twinAt = fresh, len(p.log)
}

func (p *player) restoreFrom(q *Queue, at int) {
	p.t.Helper()
	var out Effects
	for _, rec := range p.log[at:] {
		if err := q.Replay(rec, &out.Effects); err != nil {
			p.fatalf("replay after snapshot: %v", err)
		}
	}
	if !q.Restored() {
		p.fatalf("the snapshot has ended but the queue is not whole")
	}
}

func (p *player) body(size int) Ref {
	p.nextAt += 1000
	return Ref{At: p.nextAt, Size: uint32(size)}
}

// TestReorderingAgreesWithTheModel changes the order now and then, of queues that are
// long enough for a change to take many steps (A9).
func TestReorderingAgreesWithTheModel(t *testing.T) {
	for seed := range 2 * *seeds {
		for _, sessions := range []bool{false, true} {
			t.Run(fmt.Sprintf("sessions=%t/seed=%d", sessions, seed), func(t *testing.T) {
				cfg := Config{LockFor: 10 * time.Second, MaxFailures: 3, Sessions: sessions}
				p := newPlayer(t, seed, cfg)
				p.reorders = true
				for i := range 400 {
					if i%200 == 0 && !sessions {
						p.flood(300) // long enough for a run
					}
					p.step()
					p.tick()
					p.verify()
				}
				for p.q.Reorder(1 + p.rnd.IntN(30)) {
					p.verify()
				}
			})
		}
	}
}

func TestRandomCommandsAgreeWithTheModel(t *testing.T) {
	base := Config{LockFor: 10 * time.Second, MaxFailures: 3, DuplicateWindow: 15 * time.Second, DeadLetterExpired: true}
	base.Order = Order{
		Objective: []time.Duration{5 * time.Second, time.Minute, 30 * time.Second, 0, 20 * time.Second},
		Weight:    []uint32{1, 2, 3}, AgingInterval: 17 * time.Second, AgingMaxLevel: 3, DefaultShare: Share{Cap: 4},
	}
	for _, d := range []struct {
		name string
		with func(*Order)
	}{
		{"strict", func(*Order) {}},
		{"crowded", func(o *Order) { o.Saturation = Saturation{Waiting: 8} }},
		{"belated", func(o *Order) { o.Saturation = Saturation{Waiting: 30, Oldest: 15 * time.Second} }},
		{"newest first", func(o *Order) { o.LevelOrder, o.Saturation = Lifo, Saturation{Waiting: 8} }},
		{"weighted newest first", func(o *Order) { o.Discipline, o.LevelOrder = Weighted, Lifo }},
		{"finish first", func(o *Order) { o.LevelOrder = FinishFirst }},
		{"aging finish first", func(o *Order) { o.Discipline, o.LevelOrder = Aging, FinishFirst }},
		{"aging", func(o *Order) { o.Discipline = Aging }},
		{"deadline", func(o *Order) { o.Discipline = Deadline }},
		{"weighted", func(o *Order) { o.Discipline = Weighted }},
	} {
		for i := range 4 {
			cfg := base
			cfg.Sessions, cfg.Order.Fair = i&1 != 0, i&2 != 0
			d.with(&cfg.Order)
			for seed := range *seeds {
				name := fmt.Sprintf("%s/sessions=%t/fair=%t/seed=%d", d.name, cfg.Sessions, cfg.Order.Fair, seed)
				t.Run(name, func(t *testing.T) {
					p := newPlayer(t, seed, cfg)
					for range 600 {
						p.step()
						p.tick() // what came back expired goes
						p.verify()
					}
				})
			}
		}
	}
}
