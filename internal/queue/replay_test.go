// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/record"
	"github.com/triagemq/triagemq/internal/queue/state"
)

// sample returns the log of a queue in which a bit of everything happened.
func sample(cfg Config) [][]byte {
	q := New(cfg, 1)
	var out Effects
	now := epochStart
	seqs := make([]SeqNo, 3)
	arrivals := []Arrival{
		{Body: Ref{At: 1, Size: 10}, Level: 4, Session: "s", InSession: true, MessageID: "a"},
		{Body: Ref{At: 2, Size: 10}, Level: 7, Session: "s", InSession: true, Key: "k", TTL: time.Minute},
		{Body: Ref{At: 3, Size: 10}, Level: 1, Session: "t", InSession: true, NotBefore: now.Add(time.Minute), At: now.Add(-time.Hour), Origin: 9, Hops: 2},
	}
	if err := q.Enqueue(now, arrivals, seqs, &out); err != nil {
		panic(err)
	}
	l, _, _ := q.LockNextSession(now, TakeOptions{})
	for range 2 {
		d, ok := q.Take(now, TakeOptions{Session: l}, &out)
		if !ok {
			d, ok = q.Take(now, TakeOptions{}, &out)
		}
		if !ok {
			panic("nothing to take")
		}
		if d.Seq == 1 {
			_, _ = q.Defer(now, d.Token, &out)
		} else {
			_ = q.Rewrite(now, d.Token, Ref{At: 4, Size: 11}, &out)
			_, _ = q.Abandon(now, d.Token, &out)
		}
	}
	u, _, _ := q.LockSession(now, "u")
	if err := q.Enqueue(now, []Arrival{{Body: Ref{At: 6, Size: 10}, Level: 2, Session: "u", InSession: true, Reason: Ref{At: 7, Size: 3}}}, seqs[:1], &out); err != nil {
		panic(err)
	}
	if d, ok := q.Take(now, TakeOptions{Session: u, ReceiveAndDelete: true, MaxLevel: 2}, &out); !ok || q.Return(now, &d, &out) != nil {
		panic("nothing to return")
	}
	q.ReleaseSession(now, u, &out)
	q.SetSessionState(now, "s", Ref{At: 5, Size: 12}, &out)
	_ = q.Reclassify(now, 2, Classification{Level: 3, Key: "m"}, &out)
	for snap, done := q.Snapshot(), false; !done; {
		done = snap.Step(items(2), nil, &out.Effects)
	}
	q.Tick(now.Add(2*time.Minute), &out)
	q.Configure(now, cfg, &out)
	q.Purge(now, &Purge{}, 99, &out)
	return out.Records()
}

func sampleConfig() Config {
	return Config{
		LockFor: time.Minute, Sessions: true, DuplicateWindow: time.Hour, TTL: time.Hour, MaxFailures: 5,
		Order: Order{
			Discipline: Deadline, AgingInterval: time.Second, AgingMaxLevel: 9, Objective: []time.Duration{0, time.Second},
			Weight: []uint32{1, 2}, Fair: true, DefaultShare: Share{Weight: 1}, Shares: []Share{{Key: "k", Weight: 3, Cap: 1, Rate: 2.5, Burst: 4}},
		},
	}
}

func TestReplayOfEveryPrefixOfARecordIsAnError(t *testing.T) {
	log := sample(sampleConfig())
	for i, rec := range log {
		for cut := range len(rec) {
			q := New(sampleConfig(), 2)
			var out Effects
			for _, before := range log[:i] {
				if err := q.Replay(before, &out.Effects); err != nil {
					t.Fatalf("record %d: %v", i, err)
				}
			}
			err := q.Replay(rec[:cut], &out.Effects)
			if cut == 0 && !errors.Is(err, state.ErrCorrupt) {
				t.Fatalf("empty record: %v, want %v", err, state.ErrCorrupt)
			}
			// A list of items may end early at an item and still be a record.
			if err != nil && !errors.Is(err, state.ErrCorrupt) {
				t.Fatalf("record %d cut to %d of %d bytes: %v, want %v", i, cut, len(rec), err, state.ErrCorrupt)
			}
		}
	}
}

func TestReplayRefuses(t *testing.T) {
	enqueue := func(seq SeqNo) []byte {
		var out Effects
		out.Begin(record.KindEnqueue)
		out.Fixed(1)
		out.Uint(uint64(seq))
		out.Uint(1)
		record.WriteItem(&out.Effects, &record.Item{Body: Ref{At: 1, Size: 1}, OrderTime: 1}, 1)
		all, _ := out.Written()
		return all
	}
	bytesOf := func(k record.Kind, tail ...byte) []byte { return append([]byte{byte(k)}, tail...) }
	tests := []struct {
		what string
		log  [][]byte
	}{
		{"an unknown kind", [][]byte{{0x7f}}},
		{"an unknown key that starts", [][]byte{bytesOf(record.KindStarted, 1, 1, 'k')}},
		{"a key that starts as none", [][]byte{bytesOf(record.KindStarted, 0, 1, 'k')}},
		{"a gap in the numbers", [][]byte{enqueue(1), enqueue(3)}},
		{"a number twice", [][]byte{enqueue(1), enqueue(1)}},
		{"bytes behind the record", [][]byte{append(enqueue(1), 0)}},
		{"an unknown message that goes", [][]byte{bytesOf(record.KindRemoved, 9)}},
		{"an unknown message that fails", [][]byte{bytesOf(record.KindFailed, 9, 1)}},
		{"an unknown message that is deferred", [][]byte{bytesOf(record.KindDeferred, 9)}},
		{"a reason for an unknown message", [][]byte{bytesOf(record.KindReasons, 9, 1, 1)}},
		{"an unknown message that returns", [][]byte{append(bytesOf(record.KindReturned, 0, 0, 0, 0, 0, 0, 0, 0, 9), enqueue(1)[11:]...)}},
		{"a message that returns and was not gone", [][]byte{enqueue(1), append(bytesOf(record.KindReturned, 0, 0, 0, 0, 0, 0, 0, 0, 1), enqueue(1)[11:]...)}},
		{"a time before 1970", [][]byte{append(bytesOf(record.KindEnqueue, 0, 0, 0, 0, 0, 0, 0, 0x80), enqueue(1)[9:]...)}},
		{"number zero", [][]byte{bytesOf(record.KindRemoved, 0)}},
		{"a chunk without its snapshot", [][]byte{bytesOf(record.KindEntries, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)}},
		{"an unknown message that begins", [][]byte{append(bytesOf(record.KindActivate, 0, 0, 0, 0, 0, 0, 0, 0, 9), enqueue(1)[11:]...)}},
	}
	for _, test := range tests {
		q := New(Config{}, 1)
		var out Effects
		var err error
		for _, rec := range test.log {
			if err = q.Replay(rec, &out.Effects); err != nil {
				break
			}
		}
		if !errors.Is(err, state.ErrCorrupt) {
			t.Errorf("%s: %v, want %v", test.what, err, state.ErrCorrupt)
		}
	}
}

func TestSecondSnapshotReplacesOneThatNeverEnded(t *testing.T) {
	q := New(Config{LockFor: time.Minute}, 1)
	var out Effects
	as := []Arrival{{Body: Ref{At: 1, Size: 1}}, {Body: Ref{At: 2, Size: 1}}, {Body: Ref{At: 3, Size: 1}}}
	if err := q.Enqueue(epochStart, as, make([]SeqNo, 3), &out); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	for snap, n := q.Snapshot(), 0; n < 4; n++ { // as far as its first message
		snap.Step(items(1), nil, &out.Effects)
	}
	q.Purge(epochStart, &Purge{Max: 1}, 99, &out)
	for snap, done := q.Snapshot(), false; !done; {
		done = snap.Step(items(1), nil, &out.Effects)
	}
	fresh := New(Config{}, 2)
	var replayed Effects
	for _, rec := range out.Records() {
		if err := fresh.Replay(rec, &replayed.Effects); err != nil {
			t.Fatal(err)
		}
	}
	if !fresh.Restored() || fresh.StateHash(epochStart) != q.StateHash(epochStart) {
		t.Errorf("got %+v, want %+v", peekAll(fresh, epochStart, nil), peekAll(q, epochStart, nil))
	}
	if got, want := len(replayed.Added)-len(replayed.Freed), 2; got != want {
		t.Errorf("%d bodies placed and not freed, want %d", got, want)
	}
}

func FuzzReplay(f *testing.F) {
	plain := sampleConfig()
	plain.Sessions = false
	for _, cfg := range []Config{sampleConfig(), plain} {
		var all []byte
		for _, rec := range sample(cfg) {
			all = append(all, byte(len(rec)))
			all = append(all, rec...)
		}
		f.Add(all, cfg.Sessions)
	}
	f.Fuzz(func(t *testing.T, log []byte, sessions bool) {
		cfg := sampleConfig()
		cfg.Sessions = sessions
		q := New(cfg, 2)
		var out Effects
		for len(log) > 0 {
			n := min(int(log[0]), len(log)-1)
			err := q.Replay(log[1:1+n], &out.Effects)
			log = log[1+n:]
			if err != nil {
				return // refusing is fine, panicking is not
			}
		}
		if !q.Restored() {
			return
		}
		if err := q.Check(); err != nil {
			t.Fatal(err)
		}
		exercise(t, q, epochStart)
	})
}

// exercise does to a replayed queue what its owner would do next.
func exercise(t *testing.T, q *Queue, now time.Time) {
	var out Effects
	for range 50 {
		q.Tick(now, &out)
		q.NextDeadline()
		w := TakeOptions{}
		w.Session, _, _ = q.LockNextSession(now, w)
		for range 5 {
			if d, ok := q.Take(now, w, &out); ok {
				if _, err := q.Complete(now, d.Token, &out); err != nil && q.core.Config.LockFor > 0 {
					t.Fatal(err)
				}
			}
		}
	}
	if err := q.Check(); err != nil {
		t.Fatal(err)
	}
}

// items is a budget of n items and any number of bytes.
func items(n int) *machine.Budget { return &machine.Budget{Items: n, Bytes: 1 << 30} }

// Older programs wrote that a message was deferred, and counted nothing. A store of
// theirs gives what it gave then; what is written now counts a delivery.
func TestDeferredRecordsOfOlderProgramsCountNothing(t *testing.T) {
	q, now := New(Config{LockFor: time.Minute, MaxFailures: 3}, 1), epochStart
	var out Effects
	var log [][]byte
	keep := func() {
		for _, rec := range out.Records() {
			log = append(log, bytes.Clone(rec))
		}
		out.Reset()
	}
	if err := q.Enqueue(now, []Arrival{{Body: Ref{At: 1, Size: 1}}}, make([]SeqNo, 1), &out); err != nil {
		t.Fatal(err)
	}
	keep()
	old := append(slices.Clone(log), []byte{byte(record.KindDeferred), 1})
	d, _ := q.Take(now, TakeOptions{}, &out)
	if _, err := q.Defer(now, d.Token, &out); err != nil {
		t.Fatal(err)
	}
	keep()
	for what, c := range map[string]struct {
		log      [][]byte
		failures uint32
	}{"old": {old, 0}, "new": {log, 1}} {
		q := New(Config{LockFor: time.Minute, MaxFailures: 3}, 2)
		for _, rec := range c.log {
			if err := q.Replay(rec, &out.Effects); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		if d, ok := q.Lookup(1); !ok || d.State != Deferred || d.Failures != c.failures {
			t.Errorf("%s: %+v, %t, want it deferred with %d failures", what, d, ok, c.failures)
		}
	}
}
