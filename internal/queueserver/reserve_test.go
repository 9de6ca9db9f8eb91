// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/vfs"
)

// oneSettlement is what it takes in the journal to settle a message alone: a batch with one
// frame of one short record. The number is that of the format, not of the engine.
const oneSettlement = 40 + 24 + 16

// fullDisk is a small disk with shards that share a journal, and what waits in each. Its
// model is one number: what settling every message takes.
type fullDisk struct {
	t     *testing.T
	rnd   *rand.Rand
	disk  *vfs.Mem
	wal   *wal.WAL
	rigs  []*rig
	ids   []ID
	wait  []int // messages that wait, dead letters included
	takes []*taker
	full  int // sends in a row that were refused
	size  int // of messages at most
	pace  int // bursts in a turn
}

func newFullDisk(t *testing.T, seed uint64) *fullDisk {
	f := &fullDisk{t: t, rnd: rand.New(rand.NewPCG(seed, 14)), disk: vfs.NewMem()}
	f.disk.SetSize(int64(2+f.rnd.IntN(8)) << 20)
	f.size, f.pace = []int{0, 0, 0, 20, 500, 5000}[f.rnd.IntN(6)], 1+f.rnd.IntN(8)
	segment := uint64(32<<10) << f.rnd.IntN(4)
	w, err := wal.Open(f.disk, wal.Options{SegmentSize: segment})
	if err != nil {
		t.Fatal(err)
	}
	f.wal = w
	shards := 1 + f.rnd.IntN(4)
	numbers := make([]journal.Shard, shards)
	for i := range numbers {
		numbers[i] = journal.Shard(i)
	}
	f.rigs = make([]*rig, shards)
	for i := range f.rigs {
		f.rigs[i] = &rig{t: t, disk: f.disk, wal: w, now: time.Unix(1_700_000_000, 0)}
	}
	all, err := OpenAll(context.Background(), w, numbers, Options{
		SnapshotAfter: uint64(64<<10) << f.rnd.IntN(4), // often small: one is under way most of the time
		SnapshotStep:  1 + f.rnd.IntN(300),
		CacheBytes:    1,
		Go: func(n journal.Shard, work func()) {
			f.rigs[n].background = append(f.rigs[n].background, work)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range f.rigs {
		r.s = all[i]
		f.ids = append(f.ids, r.define(fmt.Sprint("q", i), queue.Config{LockFor: time.Minute, DeadLetterExpired: f.rnd.IntN(2) == 0}))
		f.wait = append(f.wait, 0)
	}
	return f
}

// check compares what is available with what settling everything takes.
func (f *fullDisk) check(when string) {
	f.t.Helper()
	need := 0
	for _, n := range f.wait {
		need += n * oneSettlement
	}
	for i, r := range f.rigs {
		if r.s.Stuck() {
			f.t.Fatalf("%s: shard %d is stuck, %v wait: %+v", when, i, f.wait, f.wal.Stats())
		}
	}
	if st := f.wal.Stats(); st.Available < uint64(need) {
		f.t.Fatalf("%s: %d bytes are available, settling the %v messages takes %d: %+v", when, st.Available, f.wait, need, st)
	}
}

// burst sends one batch to a queue.
func (f *fullDisk) burst() {
	i := f.rnd.IntN(len(f.rigs))
	s := &Send{Done: func(_ []queue.SeqNo, err error) {
		switch {
		case err == nil:
			f.full = 0
		case errors.Is(err, ErrDiskFull):
			f.full++
		case !errors.Is(err, ErrBusy) && !errors.Is(err, engine.ErrTooLarge):
			f.t.Errorf("send: %v", err)
		}
	}}
	for n := range 1 + f.rnd.IntN(100) {
		a := queue.Arrival{Level: queue.Level(f.rnd.IntN(3))}
		if f.rnd.IntN(4) == 0 {
			a.Key = strings.Repeat("k", 1+f.rnd.IntN(60)) + fmt.Sprint(f.rnd.IntN(1000))
		}
		if f.rnd.IntN(4) == 0 {
			a.TTL = time.Duration(1+f.rnd.IntN(50)) * time.Hour
		}
		if f.rnd.IntN(8) == 0 {
			a.NotBefore = f.rigs[i].now.Add(time.Duration(1+f.rnd.IntN(20)) * time.Hour)
		}
		s.Bodies = append(s.Bodies, text(strings.Repeat("x", f.rnd.IntN(f.size+1))))
		s.Copies = append(s.Copies, Copy{ID: f.ids[i], Body: n, Arrival: a})
	}
	if err := f.rigs[i].s.Send(s); err != nil {
		f.t.Fatal(err)
	}
}

// turn does one thing of those that happen by themselves.
func (f *fullDisk) turn() {
	r := f.rigs[f.rnd.IntN(len(f.rigs))]
	switch f.rnd.IntN(8) {
	case 0, 1:
		if err := f.wal.Commit(); err != nil {
			f.t.Fatal(err)
		}
	case 2:
		if len(r.background) > 0 {
			work := r.background[0]
			r.background = r.background[1:]
			work()
		}
	case 3:
		for _, r := range f.rigs {
			r.now = r.now.Add(100 * time.Millisecond)
		}
	default:
		r.step()
	}
	f.count()
}

// count asks the queues how many messages wait: those of the group that is open, too.
func (f *fullDisk) count() {
	for i, r := range f.rigs {
		e := r.s.entities[f.ids[i]]
		f.wait[i] = int(e.parts[Main].q.Counts().Total() + e.parts[DeadLetter].q.Counts().Total())
	}
}

// fill sends until the disk is full, with snapshots under way. Other processes take
// some of the disk meanwhile, and then all.
func (f *fullDisk) fill() {
	for n := 0; f.full < 20; n++ {
		if n > 200_000 {
			f.t.Fatalf("the disk is never full: %+v", f.wal.Stats())
		}
		if f.rnd.IntN(4) == 0 {
			for range f.pace {
				f.burst()
			}
		}
		if f.rnd.IntN(300) == 0 {
			f.disk.SetOthers(f.rnd.Int64N(1 << 20))
		}
		f.turn()
		f.check("a burst")
	}
	f.disk.SetOthers(1 << 40)
	for range 100 {
		f.turn()
		f.check("full")
	}
}

// waste has everything fail again and again until that is refused. Receivers then lock
// everything and are gone. Time passes: locks end, and messages arrive and expire, many
// of them alone.
func (f *fullDisk) waste() {
	for i, r := range f.rigs {
		k := r.attach(f.ids[i], Main, queue.TakeOptions{DurableLock: f.rnd.IntN(2) == 0})
		if k.c.take.DurableLock { // locks that are logged, and released again
			for range 80 {
				k.got = nil
				if err := k.c.SetDeliveryLimit(k.c.deliveredCount + 1 + f.rnd.Uint64N(200)); err != nil {
					f.t.Fatal(err)
				}
				f.quiesce(i)
				for _, d := range k.got {
					if err := f.settle(k, i, Release, d); err != nil {
						f.t.Fatalf("release: %v", err)
					}
				}
			}
		}
		for failed := true; failed; {
			k.got, failed = nil, false
			if err := k.c.SetDeliveryLimit(k.c.deliveredCount + 1 + f.rnd.Uint64N(200)); err != nil {
				f.t.Fatal(err)
			}
			f.quiesce(i)
			for _, d := range k.got {
				err := f.settle(k, i, Abandon, d)
				f.check("a failure")
				failed = failed || err == nil
			}
			if r.s.Snapshots() > 20 {
				break // it may go on like this without end
			}
		}
		for range 5 { // it cannot take them, again and again
			if err := ReturnFailed(k.got); err != nil {
				f.t.Fatal(err)
			}
			k.got = nil
			if err := k.c.SetDeliveryLimit(k.c.deliveredCount + 1000); err != nil {
				f.t.Fatal(err)
			}
			f.quiesce(i)
			f.check("too large for the receiver")
		}
		if err := k.c.SetDeliveryLimit(1 << 20); err != nil {
			f.t.Fatal(err)
		}
		f.quiesce(i)
		if err := k.c.Detach(); err != nil {
			f.t.Fatal(err)
		}
	}
	for range 60 {
		for i, r := range f.rigs {
			r.now = r.now.Add(time.Hour)
			for more := true; more; {
				f.quiesce(i)
				f.check("what falls due")
				at, ok := r.s.NextDeadline()
				more = ok && !at.After(r.now)
			}
			if n := r.s.entities[f.ids[i]].parts[Main].q.Counts(); n.Locked > 0 {
				f.t.Fatalf("shard %d: %d messages are locked by nobody", i, n.Locked)
			}
		}
	}
	for i, r := range f.rigs {
		if n := r.s.entities[f.ids[i]].parts[Main].q.Counts(); n.Scheduled > 0 {
			f.t.Fatalf("shard %d: %+v, and everything is due", i, n)
		}
	}
}

// drain settles everything, in a random order and each message in a commit of its own,
// and has a part of the deliveries fail first.
func (f *fullDisk) drain() {
	for _, part := range []SubQueue{Main, DeadLetter} {
		for i, r := range f.rigs {
			k := r.attach(f.ids[i], part, queue.TakeOptions{})
			for {
				if err := k.c.SetDeliveryLimit(k.c.deliveredCount + 1 + f.rnd.Uint64N(200)); err != nil {
					f.t.Fatal(err)
				}
				for n := 0; n < 5 && len(k.got) == 0; n++ { // deliveries may wait for the disk
					f.quiesce(i)
				}
				got := k.got // and what failed comes again
				if k.got = nil; len(got) == 0 {
					break
				}
				f.rnd.Shuffle(len(got), func(a, b int) { got[a], got[b] = got[b], got[a] })
				for _, d := range got {
					v := Complete
					if part == Main {
						v = []Disposition{Complete, Complete, Complete, Complete, Complete, Complete, Abandon, Reject}[f.rnd.IntN(8)]
					}
					err := f.settle(k, i, v, d)
					if err != nil && v != Complete { // it was refused, for it frees nothing
						err = f.settle(k, i, Complete, d)
					}
					if err != nil {
						f.t.Fatalf("complete: %v", err)
					}
					f.check("a drain")
				}
			}
		}
	}
}

// quiesce has one shard done with what it was told.
// settle settles a message of the i-th queue, and waits for the answer.
func (f *fullDisk) settle(k *taker, i int, v Disposition, d Delivery) (err error) {
	answered := false
	if err := k.r.s.Settle(&Settle{ID: k.c.queue.entity.ID, SubQueue: k.c.queue.part, Tokens: []queue.Token{d.Token}, Disposition: v,
		Reason: "because", Description: "at length", Done: func(errs []error) {
			if answered = true; len(errs) > 0 {
				err = errs[0]
			}
		}}); err != nil {
		f.t.Fatal(err)
	}
	for n := 0; !answered; n++ {
		if n > 100 {
			f.t.Fatalf("a settlement of queue %d is never answered: %+v", i, f.wal.Stats())
		}
		f.quiesce(i)
	}
	return err
}

// quiesce lets the i-th shard and the journal do what there is to do.
func (f *fullDisk) quiesce(i int) {
	r := f.rigs[i]
	for range 2 {
		r.step()
		if err := f.wal.Commit(); err != nil {
			f.t.Fatal(err)
		}
		r.work()
	}
	r.step()
	f.count()
}

// At every instant there is space to settle everything that waits, each message alone:
// whatever the sizes of messages, batches and segments, however many shards share the
// journal, while snapshots are under way, and if other processes take the rest of the disk.
// When all of it is settled senders are admitted again.
func TestReserveCoversSettlingEverything(t *testing.T) {
	for seed := range uint64(faultSeeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			f := newFullDisk(t, seed)
			f.fill()
			sum := 0
			for _, n := range f.wait {
				sum += n
			}
			if sum == 0 {
				t.Skip("nothing fits")
			}
			f.waste()
			f.drain()
			f.count()
			for i, n := range f.wait {
				if n > 0 {
					t.Fatalf("shard %d: %d messages are left, and nobody gets them", i, n)
				}
			}
			for range 50 {
				for i, r := range f.rigs {
					r.now = r.now.Add(time.Second)
					f.quiesce(i)
				}
			}
			var sent error
			if err := f.rigs[0].s.Send(&Send{Bodies: []*message.Message{text("again")}, Copies: []Copy{{ID: f.ids[0]}},
				Done: func(_ []queue.SeqNo, err error) { sent = err }}); err != nil {
				t.Fatal(err)
			}
			f.quiesce(0)
			if sent != nil {
				t.Errorf("all %d are settled, and a send gets %v: %+v", sum, sent, f.wal.Stats())
			}
		})
	}
}
