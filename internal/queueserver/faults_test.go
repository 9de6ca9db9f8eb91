// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// moody is a journal that refuses groups now and then, and to read.
type moody struct {
	journal.Journal
	rnd  *rand.Rand
	calm bool
}

func (m *moody) Append(c journal.Claim, g *journal.Group) error {
	if !m.calm && m.rnd.IntN(8) == 0 {
		if g.Use == journal.Ordinary && m.rnd.IntN(2) == 0 {
			return journal.ErrBusy
		}
		return journal.ErrFull
	}
	return m.Journal.Append(c, g)
}

func (m *moody) Read(ctx context.Context, reads []journal.Read) {
	for i := range reads {
		if !m.calm && m.rnd.IntN(50) == 0 {
			reads[i].Err = journal.ErrCorrupt
			continue
		}
		m.Journal.Read(ctx, reads[i:i+1])
	}
}

// fate is what is known of a message.
type fate struct {
	acked    bool // stored for sure
	asked    bool // to be completed: it may be gone
	gone     bool // completed for sure, or delivered with ReceiveAndDelete
	transit  bool // received and deleted, or just returned, when a crash came: it may be lost
	returned bool // returned after it was received and deleted: it may come again
}

// game plays commands, faults and crashes at random, and knows what may become of
// each message.
type game struct {
	*rig
	rnd   *rand.Rand
	j     *moody
	id    ID
	n     int
	all   map[string]*fate
	bySeq map[queue.SeqNo]string
	// sessions says that messages are in some.
	sessions bool
	ks       []*player
	left     []*player // who have asked to leave
}

type player struct {
	*taker
	seen    int
	locked  []Delivery
	allowed uint64
}

func (g *game) mood() {
	g.j = &moody{Journal: g.s.manual().Journal(), rnd: g.rnd}
	g.s.manual().SetJournal(g.j)
}

func (g *game) one() *player {
	if len(g.ks) == 0 {
		return nil
	}
	return g.ks[g.rnd.IntN(len(g.ks))]
}

func (g *game) command() {
	k := g.one()
	switch x := g.rnd.IntN(22); {
	case x == 20 && g.rnd.IntN(4) == 0: // another order
		cfg := queue.Config{LockFor: 5 * time.Second, MaxFailures: 4, DeadLetterExpired: true}
		cfg.Order.Fair = g.rnd.IntN(2) == 0
		if err := g.s.Redefine(g.id, nil, map[SubQueue]queue.Config{Main: cfg}, func(error) {}); err != nil {
			g.t.Fatal(err)
		}
	case x == 21 && g.rnd.IntN(10) == 0:
		for _, f := range g.all {
			f.asked = true // all may be purged
		}
		g.purge(g.id, func(int, error) {})
	case x < 6:
		g.n++
		body := fmt.Sprint("m", g.n)
		f := &fate{}
		g.all[body] = f
		err := g.s.Send(&Send{Bodies: []*message.Message{text(body)},
			Copies: []Copy{{ID: g.id, Arrival: queue.Arrival{Level: queue.Level(g.rnd.IntN(3)), Key: string(rune('a' + g.rnd.IntN(3))),
				Session: fmt.Sprint(g.rnd.IntN(4)), InSession: g.sessions,
				TTL: time.Duration(g.rnd.IntN(4)) * 3 * time.Second}}},
			Done: func(seqs []queue.SeqNo, err error) {
				if err == nil {
					f.acked = true
					g.bySeq[seqs[0]] = body
				}
			}})
		if err != nil {
			g.t.Fatal(err)
		}
	case x < 8 && len(g.ks) < 4:
		p := &player{taker: &taker{r: g.rig}}
		a := Attachment{Consumer: g.s.AddSink(p.taker), ID: g.id, Take: queue.TakeOptions{ReceiveAndDelete: g.rnd.IntN(2) == 0}}
		attached := func(err error) {
			if err == nil {
				p.c = g.s.consumers[a.Consumer]
				g.ks = append(g.ks, p)
			}
		}
		err := error(nil)
		if g.sessions {
			err = g.s.AcceptSession(a, nil, func(_ queue.SessionLock, _ time.Time, err error) { attached(err) })
		} else {
			err = g.s.Attach(a, attached)
		}
		if err != nil {
			g.t.Fatal(err)
		}
	case k == nil:
	case x < 11:
		k.allowed = uint64(len(k.got) + g.rnd.IntN(5))
		_ = k.c.SetDeliveryLimit(k.allowed)
	case x < 12:
		_ = k.c.Drain()
	case x < 13:
		_ = k.c.Detach()
		for i, o := range g.ks {
			if o == k {
				g.ks = append(g.ks[:i], g.ks[i+1:]...)
				g.left = append(g.left, k)
				break
			}
		}
	case x < 18 && len(k.locked) > 0:
		d := k.locked[0]
		k.locked = k.locked[1:]
		s := &Settle{ID: g.id, Tokens: []queue.Token{d.Token}, Disposition: Disposition(g.rnd.IntN(5))}
		if g.rnd.IntN(3) == 0 {
			s.Properties = []message.Change{{Name: "note", Value: codec.Int(1)}}
		}
		f := g.all[g.bySeq[d.Seq]]
		if s.Disposition == Complete && f != nil {
			f.asked = true
		}
		s.Done = func(errs []error) {
			if s.Disposition == Complete && f != nil && (errs == nil || errs[0] == nil) {
				f.gone = true
			}
		}
		if err := g.s.Settle(s); err != nil {
			g.t.Fatal(err)
		}
	case x < 19 && k.c.take.ReceiveAndDelete && len(k.got) > 0:
		d := k.got[len(k.got)-1]
		if f := g.all[g.bySeq[d.Seq]]; f != nil && f.gone && !f.returned {
			f.gone, f.returned = false, true
			if err := Return([]Delivery{d}); err != nil {
				g.t.Fatal(err)
			}
		}
	}
}

// look takes notice of what was delivered.
func (g *game) look() {
	for _, k := range slices.Concat(g.ks, g.left) {
		for ; k.seen < len(k.got); k.seen++ {
			d := k.got[k.seen]
			f := g.all[g.bySeq[d.Seq]]
			if f == nil {
				continue // its sender does not know yet
			}
			if f.gone {
				g.t.Fatalf("%s comes again: %+v", g.bySeq[d.Seq], d.Delivery)
			}
			if k.c.take.ReceiveAndDelete {
				f.gone, f.returned, f.transit = true, false, false
			} else {
				k.locked = append(k.locked, d)
			}
		}
	}
}

func (g *game) crashNow(seed uint64) {
	for _, e := range g.s.entities {
		for _, c := range e.parts[Main].consumers {
			c.held.Withdraw(func(d *Delivery) bool {
				if f := g.all[g.bySeq[d.Seq]]; f != nil && d.removed {
					f.transit = true
				}
				return false
			})
		}
	}
	unsafe := g.s.entities[g.id].parts[Main].fence > g.s.tx.Durable() // something has returned just now
	for _, f := range g.all {
		f.transit = f.transit || f.returned || unsafe
	}
	g.background = nil
	g.ks, g.left = nil, nil
	g.crash(seed)
	g.mood()
}

// stopNow stops the shard cleanly, and opens it again. If there was space for
// all, nothing is lost, not even what was on its way.
func (g *game) stopNow(seed uint64) {
	g.j.calm = g.rnd.IntN(2) == 0
	log, end := context.WithCancel(g.t.Context())
	done := make(chan error, 1)
	go func() { done <- g.wal.Run(log) }() // ends with end, and is waited for
	g.s.manual().SetGo(func(_ journal.Shard, f func()) { f() })
	err := g.s.manual().Drain(g.t.Context())
	g.s.manual().Stop(ErrStopped)
	end()
	<-done
	g.look()
	if err != nil {
		g.crashNow(seed)
		return
	}
	g.ks, g.left, g.background = nil, nil, nil
	g.crash(seed)
	g.mood()
}

// rest lets everything come to rest, and looks what is left.
func (g *game) rest() {
	g.j.calm = true
	for i := 0; ; i++ {
		g.now = g.now.Add(retryFull)
		g.settle()
		g.look()
		if at, due := g.s.NextDeadline(); !g.s.Stuck() && g.s.tx.Durable() >= g.s.view().Tail && len(g.background) == 0 && (!due || at.After(g.now)) {
			break
		}
		if i > 500 {
			at, due := g.s.NextDeadline()
			g.t.Fatalf("it does not come to rest: stuck %v, %d of %d durable, %d in the background, due %v in %v; snapshot %+v", g.s.Stuck(), g.s.tx.Durable(), g.s.view().Tail, len(g.background), due, at.Sub(g.now), g.s.view())
		}
	}
	g.check()
	left := map[string]int{}
	g.s.Look(func(tx *Tx) {
		for _, part := range []SubQueue{Main, DeadLetter} {
			q, err := tx.Inspect(g.id, part)
			if err != nil {
				g.t.Fatal(err)
			}
			ds, _ := q.Peek(g.now, queue.Peek{Max: 1 << 30})
			for _, d := range ds {
				m, err := g.s.Read(context.Background(), d.Body)
				if err != nil {
					g.t.Fatalf("message %d of part %d: %v", d.Seq, part, err)
				}
				for data := range m.Data() {
					left[string(data)]++
				}
			}
		}
	})
	for body, f := range g.all {
		switch n := left[body]; {
		case n > 1:
			g.t.Fatalf("%s is there %d times", body, n)
		case n == 1 && f.gone:
			g.t.Fatalf("%s is there again: %+v", body, *f)
		case n == 0 && f.acked && !f.gone && !f.asked && !f.transit:
			g.t.Fatalf("%s is lost: %+v", body, *f)
		}
	}
	for _, k := range g.ks {
		if k.c.gone {
			continue // its session has ended
		}
		if g.s.entities[g.id].parts[Main].q.HasReady(g.now, k.c.take) && k.c.deliveredCount < k.c.limit {
			g.t.Fatalf("messages wait, and a consumer (%+v) has been given %d of %d; fetching %d, held %d", k.c.take, k.c.deliveredCount, k.c.limit, len(k.c.fetching), k.c.held.Waiting())
		}
		if len(k.got) != int(k.c.deliveredCount) {
			g.t.Fatalf("a consumer was given %d messages and got %d", k.c.deliveredCount, len(k.got))
		}
	}
	g.j.calm = false
}

// Whenever the disk refuses a group, and whenever it crashes, nothing that was
// promised is undone, nothing comes twice that may come once, and nobody waits in vain.
func TestFaultsAtRandom(t *testing.T) {
	for seed := range uint64(faultSeeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			opts := Options{SnapshotAfter: 16 << 10, SnapshotStep: 20, VisitStep: 5}
			if seed%2 == 0 {
				opts.CacheBytes = 1
			}
			g := &game{rig: newRig(t, opts), rnd: rnd, all: map[string]*fate{}, bySeq: map[queue.SeqNo]string{}}
			g.sessions = seed%3 == 0
			g.id = g.define("q", queue.Config{LockFor: 5 * time.Second, MaxFailures: 4, DeadLetterExpired: true, Sessions: g.sessions})
			g.mood()
			for i := range 1500 {
				g.command()
				if rnd.IntN(3) == 0 {
					g.step()
					g.look()
					g.check()
				}
				if rnd.IntN(4) == 0 && len(g.background) > 0 {
					at := rnd.IntN(len(g.background))
					f := g.background[at]
					g.background = append(g.background[:at:at], g.background[at+1:]...)
					f()
				}
				if rnd.IntN(5) == 0 {
					if err := g.wal.Commit(); err != nil {
						t.Fatal(err)
					}
				}
				if rnd.IntN(10) == 0 {
					g.now = g.now.Add(time.Duration(rnd.IntN(400)) * time.Millisecond)
				}
				switch {
				case i%300 == 299:
					g.rest()
				case rnd.IntN(200) == 0:
					g.crashNow(rnd.Uint64())
				case rnd.IntN(300) == 0:
					g.stopNow(rnd.Uint64())
				}
			}
			g.rest()
		})
	}
}
