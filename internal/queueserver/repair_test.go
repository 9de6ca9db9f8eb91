// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queue/record"
	"github.com/triagemq/triagemq/internal/vfs"
)

// The kinds of record of the engine, as they are on disk.
const (
	storedUnit         = 2
	storedSnapshotPart = 8
	storedSnapshotUnit = 9
)

// post stores a message.
func (r *rig) post(id ID, body string, a queue.Arrival) {
	r.t.Helper()
	if err := r.trySend(text(body), a, id); err != nil {
		r.t.Fatalf("send %q: %v", body, err)
	}
}

// history has a shard with messages in all states, and a history with all kinds of
// records. Every message has a body of its own. snapshots is after how many rounds one
// begins; zero is never.
func history(t *testing.T, seed uint64, snapshots int) *rig {
	t.Helper()
	r := newRig(t, Options{SnapshotAfter: 1 << 40, SnapshotStep: 3})
	rng := rand.New(rand.NewPCG(seed, 1))
	plain := r.define("plain", queue.Config{LockFor: time.Hour, DuplicateWindow: time.Hour})
	timed := r.define("timed", queue.Config{LockFor: time.Hour})
	talks := r.define("talks", queue.Config{LockFor: time.Hour, Sessions: true})
	dropped := r.define("dropped", queue.Config{LockFor: time.Hour})
	r.post(dropped, "in a queue that is dropped", queue.Arrival{})
	takers := map[ID]*taker{plain: r.attach(plain, Main, queue.TakeOptions{}), timed: r.attach(timed, Main, queue.TakeOptions{})}
	session := &taker{r: r}
	name := "b"
	var lock queue.SessionLock
	r.post(talks, "the first of a talk", queue.Arrival{InSession: true, Session: name})
	r.accept(session, Attachment{ID: talks}, &name, func(l queue.SessionLock, _ time.Time, err error) {
		if lock = l; err != nil {
			t.Error(err)
		}
	})
	r.settle()
	takers[talks] = session
	limits := map[ID]uint64{}
	for i := range 24 {
		body := fmt.Sprintf("%d of %d", i, seed)
		r.post(plain, "plain "+body, queue.Arrival{MessageID: body, Level: queue.Level(rng.IntN(5)), Key: fmt.Sprint(rng.IntN(3))})
		r.post(timed, "timed "+body, queue.Arrival{NotBefore: r.now.Add(time.Duration(rng.IntN(8)) * time.Second), Level: 4})
		r.post(talks, "talks "+body, queue.Arrival{InSession: true, Session: string(rune('a' + i%3))})
		r.now = r.now.Add(2 * time.Second)
		if snapshots > 0 && i%snapshots == snapshots-1 {
			r.s.manual().BeginSnapshot()
			r.step()
			if err := r.wal.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []ID{plain, timed, talks} {
			k := takers[id]
			before := len(k.got)
			limits[id]++
			if err := k.c.SetDeliveryLimit(limits[id]); err != nil {
				t.Fatal(err)
			}
			r.step()
			r.step()
			for _, d := range k.got[before:] {
				if what := rng.IntN(6); what < 5 { // else it stays locked
					k.settle([]Disposition{Complete, Complete, Abandon, Defer, Reject}[what], d)
				}
			}
		}
		switch i {
		case 9:
			state := SetSessionState{Queue: QueueID{talks, Main}, Lock: lock, State: []byte("half way")}
			if err := Post(r.s, state, func(_ struct{}, err error) {
				if err != nil {
					t.Error(err)
				}
			}); err != nil {
				t.Fatal(err)
			}
		case 12:
			if err := r.s.Drop([]ID{dropped}, func(error) {}); err != nil {
				t.Fatal(err)
			}
		case 13:
			r.settle()
			r.post(r.define("dropped", minute), "in another queue of that name", queue.Arrival{})
		}
		if i%4 == 3 {
			r.settle()
		}
	}
	r.post(r.define("last", minute), "in the last queue", queue.Arrival{})
	r.settle()
	return r
}

// held is a message in a queue, by its body.
type held struct {
	entity ID
	part   SubQueue
	body   queue.Ref
}

// holds returns the messages of a shard and their states.
func (r *rig) holds() map[held]queue.State {
	r.t.Helper()
	all := map[held]queue.State{}
	for _, e := range r.s.sorted() {
		for _, hq := range e.parts {
			ds, _ := hq.q.Peek(r.now, queue.Peek{Max: 1 << 20})
			for i := range ds {
				at := held{e.ID, hq.part, ds[i].Body}
				if _, ok := all[at]; ok {
					r.t.Errorf("message %d of %s is there twice", ds[i].Seq, e.Name)
				}
				state := ds[i].State
				if state == queue.Locked { // locks are not stored
					if state = queue.Ready; ds[i].Deferred {
						state = queue.Deferred
					}
				}
				all[at] = state
			}
		}
	}
	return all
}

// hashes returns the state of each queue.
func (r *rig) hashes() map[QueueID][32]byte {
	all := map[QueueID][32]byte{}
	for _, e := range r.s.sorted() {
		for _, hq := range e.parts {
			all[QueueID{e.ID, hq.part}] = hq.q.StateHash(r.now)
		}
	}
	return all
}

// storedRecord is a record of a shard on the disk.
type storedRecord struct {
	at      journal.Position
	payload []byte
}

// unit returns the queue a record is of, and the kind of the queue's own record.
func (s *storedRecord) unit() (id QueueID, kind record.Kind, ok bool) {
	rest := s.payload[1:]
	if s.payload[0] == storedSnapshotUnit {
		_, n := binary.Uvarint(rest)
		rest = rest[n:]
	} else if s.payload[0] != storedUnit {
		return QueueID{}, 0, false
	}
	unit, n := binary.Uvarint(rest)
	return QueueID{ID(unit / parts), SubQueue(unit % parts)}, rest[n], true
}

// entity returns the entity that a record of the shard's own is about.
func (s *storedRecord) entity() ID {
	rest := s.payload[1:]
	if s.payload[0] == storedSnapshotPart {
		_, n := binary.Uvarint(rest)
		rest = rest[n:]
	}
	id, _ := binary.Uvarint(rest)
	return ID(id)
}

// mentions reports whether a record has the message with this body.
func (s *storedRecord) mentions(body queue.Ref) bool {
	return bytes.Contains(s.payload, binary.AppendUvarint(binary.AppendUvarint(nil, body.At), uint64(body.Size)))
}

func (s *storedRecord) String() string {
	if id, kind, ok := s.unit(); ok {
		return fmt.Sprintf("record at %d, kind %d, queue %v, kind %#02x", s.at, s.payload[0], id, kind)
	}
	return fmt.Sprintf("record at %d, kind %d", s.at, s.payload[0])
}

// replayed returns the records that a start would replay.
func replayed(t *testing.T, disk *vfs.Mem) (all []storedRecord) {
	t.Helper()
	w, err := wal.Open(disk.CrashClone(0), wal.Options{SegmentSize: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	_, records, err := journal.ClaimOne(context.Background(), w, 0)
	if err != nil {
		t.Fatal(err)
	}
	for rec, err := range records {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, storedRecord{rec.At, bytes.Clone(rec.Payload)})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// without returns a disk on which records are damaged, and a repair has dropped them.
func without(t *testing.T, disk *vfs.Mem, recs ...storedRecord) *vfs.Mem {
	t.Helper()
	hurt := disk.CrashClone(0)
	for _, rec := range recs {
		name := fmt.Sprintf("%010d.seg", uint64(rec.at)>>16)
		bit := int64(uint64(rec.at)&(1<<16-1)+format.FrameHeader) * 8
		if err := vfs.NewFault(hurt).FlipBit(name, bit); err != nil {
			t.Fatal(err)
		}
	}
	done, err := repair.Repair(hurt, repair.DropDamaged)
	if err != nil {
		t.Fatal(err)
	}
	lost := uint64(0)
	for _, d := range done.Dropped {
		lost += d.Records
	}
	if lost != uint64(len(recs)) {
		t.Fatalf("%d records were dropped, want %d", lost, len(recs))
	}
	return hurt
}

// reopen opens the shard on another disk.
func (r *rig) reopen(disk *vfs.Mem) (*rig, error) {
	o := &rig{t: r.t, disk: disk, opts: r.opts, now: r.now}
	o.opts.Go = func(_ journal.Shard, f func()) { o.background = append(o.background, f) }
	w, err := wal.Open(disk, wal.Options{SegmentSize: 1 << 16})
	if err != nil {
		return nil, err
	}
	o.wal = w
	o.s, err = Open(context.Background(), w, 0, o.opts)
	return o, err
}

// TestStoreOpensWithoutOneRecord drops each record of a history in turn. The shard opens
// with everything else.
func TestStoreOpensWithoutOneRecord(t *testing.T) {
	for seed, snapshots := range []int{0, 24, 11, 5} {
		t.Run(fmt.Sprint("snapshots ", snapshots), func(t *testing.T) {
			r := history(t, uint64(seed), snapshots)
			recs := replayed(t, r.disk.CrashClone(0))
			// Damage in the last batch is taken for a torn end, which is cut and not dropped.
			r.post(1, "behind the last of them", queue.Arrival{})
			r.settle()
			disk := r.disk.CrashClone(0)
			whole, err := r.reopen(disk.CrashClone(0))
			if err != nil {
				t.Fatal(err)
			}
			want, hashes := whole.holds(), whole.hashes()
			back := 0
			for i, rec := range recs {
				if i%dropEvery != seed%dropEvery {
					continue
				}
				o, err := r.reopen(without(t, disk, rec))
				if err != nil {
					t.Errorf("%v: %v", &rec, err)
					continue
				}
				back += o.compare(&rec, want, hashes)
				o.survives(&rec)
				if t.Failed() {
					t.Fatalf("without the %v", &rec)
				}
			}
			t.Logf("%d records, %d messages; %d messages came back", len(recs), len(want), back)
		})
	}
}

// TestStoreOpensWithoutManyRecords drops some records here and there, and runs of them, as
// a broken sector does.
func TestStoreOpensWithoutManyRecords(t *testing.T) {
	for seed, snapshots := range []int{0, 11, 5} {
		t.Run(fmt.Sprint("snapshots ", snapshots), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 2))
			r := history(t, uint64(seed), snapshots)
			recs := replayed(t, r.disk.CrashClone(0))
			r.post(1, "behind the last of them", queue.Arrival{})
			r.settle()
			for range 40 / dropEvery {
				var lost []storedRecord
				for i := rng.IntN(10); i < len(recs); i += 1 + rng.IntN(len(recs)/4) {
					run := min(1+rng.IntN(6), len(recs)-i)
					lost = append(lost, recs[i:i+run]...)
					i += run
				}
				o, err := r.reopen(without(t, r.disk, lost...))
				if err != nil {
					t.Fatalf("without %d records, the first of them the %v: %v", len(lost), &lost[0], err)
				}
				o.check()
				o.survives(&lost[0])
				if t.Failed() {
					t.Fatalf("without %v", lost)
				}
			}
		})
	}
}

// The record with which the history begins is dropped with those around it, by which one
// tombstone takes their place.
func TestStoreOpensWithoutItsBeginning(t *testing.T) {
	r := history(t, 1, 11)
	r.post(1, "behind the last of them", queue.Arrival{})
	r.settle()
	first := replayed(t, r.disk.CrashClone(0))[0].at
	var all []storedRecord
	for rec, err := range repair.Dump(r.disk.CrashClone(0)) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, storedRecord{rec.At, bytes.Clone(rec.Payload)})
	}
	at := slices.IndexFunc(all, func(rec storedRecord) bool { return rec.at == first })
	for before := range min(at, 6) {
		for behind := range 6 {
			lost := all[at-before : at+behind+1]
			o, err := r.reopen(without(t, r.disk, lost...))
			if err != nil {
				t.Errorf("without %d records before and %d behind: %v", before, behind, err)
				continue
			}
			o.check()
			o.survives(&lost[0])
		}
	}
}

// compare compares a shard without a record with what it was, and returns how many
// messages came back.
func (r *rig) compare(rec *storedRecord, want map[held]queue.State, hashes map[QueueID][32]byte) (back int) {
	r.t.Helper()
	r.check()
	got, now := r.holds(), r.hashes()
	of, kind, isUnit := rec.unit()
	for at, state := range want {
		isState, ok := got[at]
		q := QueueID{at.entity, at.part}
		defines := (rec.payload[0] == kindDefine || rec.payload[0] == storedSnapshotPart) && rec.entity() == at.entity
		switch {
		case !ok && (defines || isUnit && of == q && rec.mentions(at.body)):
		case !ok:
			r.t.Errorf("message %+v is lost", at)
		case isState != state && !(isUnit && of == q):
			r.t.Errorf("message %+v is in state %v, was %v", at, isState, state)
		}
	}
	for at := range got {
		if _, ok := want[at]; ok {
			continue
		}
		back++
		q := QueueID{at.entity, at.part}
		switch {
		case rec.payload[0] == kindDrop && rec.entity() == at.entity:
		case isUnit && of == q && (kind == record.KindRemoved || kind == record.KindActivate || kind == record.KindEntries):
		case r.s.entities[at.entity].Name == "timed" && at.part == Main: // the number under which it was removed is not certain
		default:
			r.t.Errorf("message %+v came back", at)
		}
	}
	for q, hash := range now {
		was, ok := hashes[q]
		skipped := r.s.entities[q.Entity].parts[q.SubQueue].q.Last() >= 1<<32 // numbers that were not certain; holds has the rest
		if ok && was != hash && !(isUnit && of == q) && r.s.entities[q.Entity].Name != "timed" && !skipped {
			r.t.Errorf("queue %v of %s is not what it was", q, r.s.entities[q.Entity].Name)
		}
	}
	return back
}

// lasts returns the highest number that each queue has given.
func (r *rig) lasts() map[QueueID]queue.SeqNo {
	all := map[QueueID]queue.SeqNo{}
	for _, e := range r.s.sorted() {
		for _, hq := range e.parts {
			all[QueueID{e.ID, hq.part}] = hq.q.Last()
		}
	}
	return all
}

// Whichever record is lost, no number of a message or of an entity is given again.
func TestNumbersOfLostMessagesAreNotUsedAgain(t *testing.T) {
	r := history(t, 3, 0)
	recs := replayed(t, r.disk.CrashClone(0))
	r.post(1, "behind the last of them", queue.Arrival{})
	r.settle()
	lasts, next := r.lasts(), r.s.nextID
	disk := r.disk.CrashClone(0)
	for _, rec := range recs {
		o, err := r.reopen(without(t, disk, rec))
		if err != nil {
			t.Fatal(err)
		}
		for q, last := range o.lasts() {
			if last < lasts[q] {
				t.Errorf("without the %v: queue %v continues behind message %d, and there was %d", &rec, q, last, lasts[q])
			}
		}
		if o.s.nextID < next {
			t.Errorf("without the %v: entity %d is given again", &rec, o.s.nextID)
		}
	}
}

// survives works with a shard, and restarts it.
func (r *rig) survives(rec *storedRecord) {
	r.t.Helper()
	again := func(what string) {
		r.t.Helper()
		before := r.hashes()
		o, err := r.reopen(r.disk.CrashClone(0))
		if err != nil {
			r.t.Fatalf("%v: a start after %s: %v", rec, what, err)
		}
		o.check()
		names := map[string]bool{}
		for _, e := range o.s.sorted() {
			if names[e.Name] {
				r.t.Errorf("%v: a start after %s: there are two of %s", rec, what, e.Name)
			}
			names[e.Name] = true
		}
		after := o.hashes()
		for q, hash := range before {
			if after[q] != hash {
				r.t.Errorf("%v: a start after %s: queue %v of %s is not what it was", rec, what, q, r.s.entities[q.Entity].Name)
			}
		}
		if len(before) != len(after) {
			r.t.Errorf("%v: a start after %s: %d queues, were %d", rec, what, len(after), len(before))
		}
		*r = rig{t: r.t, disk: o.disk, opts: o.opts, wal: o.wal, s: o.s, now: o.now}
		r.opts.Go = nil
		r.s.manual().SetGo(func(_ journal.Shard, f func()) { r.background = append(r.background, f) })
	}
	again("the repair")
	for _, e := range r.s.sorted() {
		r.post(e.ID, "new", queue.Arrival{InSession: e.Sessions, Session: "a"})
	}
	if id := r.define("new", minute); rec.payload[0] == kindDefine && id <= rec.entity() {
		r.t.Errorf("%v: its number is used again, for entity %d", rec, id)
	}
	r.now = r.now.Add(time.Minute)
	r.settle()
	r.now = r.now.Add(time.Second) // records that nobody waits for
	r.settle()
	again("new messages")
	r.s.manual().BeginSnapshot()
	r.settle()
	again("a snapshot")
	for _, e := range r.s.sorted() {
		r.post(e.ID, "newer", queue.Arrival{InSession: e.Sessions, Session: "a"})
	}
	r.settle()
	r.check()
	again("the snapshot and more")
}

// Without a word of the journal that records were dropped, a gap is an error.
func TestGapWithoutDamageIsAnError(t *testing.T) {
	r := history(t, 0, 0)
	disk := r.disk.CrashClone(0)
	for _, rec := range replayed(t, disk) {
		if id, kind, ok := rec.unit(); !ok || kind != record.KindEnqueue || id.Entity != 1 {
			continue
		}
		w, err := wal.Open(disk.CrashClone(0), wal.Options{SegmentSize: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(context.Background(), &skipping{w, rec.at}, 0, r.opts)
		if err == nil || !strings.Contains(err.Error(), "shard 0: record at ") {
			t.Errorf("%v is missing without a word: %v, want an error that names the shard and the record", &rec, err)
		}
		return
	}
}

// skipping is a journal that leaves out a record without a word.
type skipping struct {
	journal.Journal
	skip journal.Position
}

func (s *skipping) Claim(ctx context.Context, shards ...journal.Shard) ([]journal.Claim, iter.Seq2[journal.Record, error], error) {
	claims, records, err := s.Journal.Claim(ctx, shards...)
	return claims, func(yield func(journal.Record, error) bool) {
		for rec, err := range records {
			if rec.At != s.skip && !yield(rec, err) {
				return
			}
		}
	}, err
}
