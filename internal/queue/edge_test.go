// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/order"
	"github.com/triagemq/triagemq/internal/queue/record"
)

// take receives a message and fails the test if there is none.
func take(t *testing.T, q *Queue, now time.Time) Delivery {
	t.Helper()
	var out Effects
	d, ok := q.Take(now, TakeOptions{}, &out)
	if !ok {
		t.Fatal("nothing to take")
	}
	return d
}

func TestLockThatRanOutIsLostBeforeTick(t *testing.T) {
	q := New(Config{LockFor: time.Minute}, 1)
	send(t, q, epochStart, Arrival{}, 1)
	d := take(t, q, epochStart)
	var out Effects
	if _, err := q.Complete(epochStart.Add(time.Minute), d.Token, &out); !errors.Is(err, ErrLockLost) {
		t.Errorf("complete at the end of the lock: %v, want %v", err, ErrLockLost)
	}
}

func TestRefusedMessageIsNoDuplicateLater(t *testing.T) {
	q := New(Config{MaxBytes: 10 + MessageOverhead, DuplicateWindow: time.Hour}, 1)
	var out Effects
	seqs := make([]SeqNo, 1)
	big, small := []Arrival{{MessageID: "x", Body: Ref{At: 1, Size: 11}}}, []Arrival{{MessageID: "x", Body: Ref{At: 2, Size: 10}}}
	if err := q.Enqueue(epochStart, big, seqs, &out); !errors.Is(err, ErrFull) {
		t.Fatalf("11 bytes into a queue of 10: %v, want %v", err, ErrFull)
	}
	if _, err := q.Admit(epochStart, small); err != nil {
		t.Fatalf("admit: %v", err)
	}
	if err := q.Enqueue(epochStart, small, seqs, &out); err != nil || seqs[0] != 1 {
		t.Fatalf("number %d, %v; the first attempt was refused, so want 1", seqs[0], err)
	}
	if err := q.Enqueue(epochStart, big, seqs, &out); err != nil || seqs[0] != 0 {
		t.Fatalf("number %d, %v; a duplicate needs no space, so want 0", seqs[0], err)
	}
}

func TestAdmitLeavesOutDuplicates(t *testing.T) {
	q := New(Config{DuplicateWindow: time.Hour}, 1)
	send(t, q, epochStart, Arrival{MessageID: "x"}, 1)
	fresh, err := q.Admit(epochStart, []Arrival{{MessageID: "x"}, {MessageID: "y"}, {}, {MessageID: "y"}, {}})
	if err != nil || len(fresh) != 3 || fresh[0].MessageID != "y" || fresh[1].MessageID != "" {
		t.Errorf("got %+v, %v; want the first y and the two without an id", fresh, err)
	}
}

func TestExpiredMessageIsNotTakenByNumber(t *testing.T) {
	q := New(Config{LockFor: time.Minute, DeadLetterExpired: true}, 1)
	send(t, q, epochStart, Arrival{TTL: time.Second}, 1)
	var out Effects
	if _, err := q.TakeSeq(epochStart.Add(time.Second), 1, TakeOptions{}, &out); !errors.Is(err, ErrNotFound) {
		t.Errorf("take by number: %v, want %v", err, ErrNotFound)
	}
	if len(out.DeadLettered) != 1 || out.DeadLettered[0].Reason != ReasonExpired {
		t.Errorf("dead letters %+v, want one that expired", out.DeadLettered)
	}
}

func TestConfigureKeepsWhatIsFixed(t *testing.T) {
	q := New(Config{Sessions: true, DeadLetterQueue: true}, 1)
	var out Effects
	q.Configure(epochStart, Config{LockFor: time.Second}, &out)
	if cfg := q.Config(); !cfg.Sessions || !cfg.DeadLetterQueue || cfg.LockFor != time.Second {
		t.Errorf("got %+v, want the new lock duration and the old kind of queue", cfg)
	}
}

func TestEarlierClockIsClamped(t *testing.T) {
	q := New(Config{LockFor: time.Minute}, 1)
	past := epochStart.Add(-time.Hour)
	send(t, q, epochStart, Arrival{}, 1)
	send(t, q, past, Arrival{}, 1)
	first, second := take(t, q, past), take(t, q, past)
	if first.Seq != 1 || !second.EnqueuedAt.Equal(epochStart) || !second.LockedUntil.Equal(epochStart.Add(time.Minute)) {
		t.Errorf("took %+v and then %+v; want the order of arrival and no time before the first", first, second)
	}
}

func TestRestartWithAnEarlierClockKeepsTheOrder(t *testing.T) {
	q := New(Config{LockFor: time.Minute}, 1)
	var out Effects
	if err := q.Enqueue(epochStart, make([]Arrival, 1), make([]SeqNo, 1), &out); err != nil {
		t.Fatal(err)
	}
	again := New(Config{LockFor: time.Minute}, 2)
	for _, rec := range out.Records() {
		if err := again.Replay(rec, new(machine.Effects)); err != nil {
			t.Fatal(err)
		}
	}
	past := epochStart.Add(-time.Hour)
	send(t, again, past, Arrival{TTL: time.Minute}, 1)
	if d := take(t, again, past); d.Seq != 1 {
		t.Errorf("took %d, want 1", d.Seq)
	}
	// Life is counted by the clock that there is.
	if d := take(t, again, past); d.ExpiresAt.After(epochStart.Add(time.Minute)) {
		t.Errorf("message %d expires at %v", d.Seq, d.ExpiresAt)
	}
}

func TestSortedListDropsStaleEntries(t *testing.T) {
	q := New(Config{LockFor: time.Hour}, 1)
	var out Effects
	send(t, q, epochStart, Arrival{}, 1000)
	for range 10_000 { // away from the middle and back
		d, err := q.TakeSeq(epochStart, 500, TakeOptions{}, &out)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.Release(epochStart, d.Token, &out); err != nil {
			t.Fatal(err)
		}
	}
	if got := q.core.Index.PlainList(0).Len(); got != 1000 {
		t.Errorf("%d messages in line, want 1000", got)
	}
	for seq := SeqNo(1); seq <= 1000; seq++ {
		if d := serve(t, q, epochStart); d.Seq != seq {
			t.Fatalf("took %d, want %d", d.Seq, seq)
		}
	}
}

func TestTickDoesBoundedWork(t *testing.T) {
	q := New(Config{LockFor: time.Minute, TTL: time.Second}, 1)
	send(t, q, epochStart, Arrival{}, 10_000)
	var out Effects
	ticks := 1
	for later := epochStart.Add(time.Hour); q.Tick(later, &out); ticks++ {
		if got := len(out.Records()); got > 2*tickWork {
			t.Fatalf("one tick removed %d messages", got)
		}
		out.Reset()
	}
	if ticks < 10 || q.Counts() != (Counts{}) {
		t.Errorf("%d ticks left %+v", ticks, q.Counts())
	}
}

func TestTokensOfAnotherEpochAreLost(t *testing.T) {
	for epoch := range uint32(2) {
		q := New(Config{LockFor: time.Minute}, epoch)
		send(t, q, epochStart, Arrival{}, 1)
		d := take(t, q, epochStart)
		other := Token{Seq: d.Seq, Nonce: d.Token.Nonce + 1<<32}
		var out Effects
		if _, err := q.Complete(epochStart, other, &out); !errors.Is(err, ErrLockLost) {
			t.Errorf("epoch %d: %v, want %v", epoch, err, ErrLockLost)
		}
		if back := TokenFrom(d.Token.Bytes()); back != d.Token {
			t.Errorf("token %v came back from the wire as %v", d.Token, back)
		}
	}
}

func TestQueueWithoutSessionsHasNoSessionLocks(t *testing.T) {
	q := New(Config{LockFor: time.Minute}, 1)
	if _, _, err := q.LockSession(epochStart, "a"); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("lock session: %v, want %v", err, ErrNotAllowed)
	}
	if _, _, ok := q.LockNextSession(epochStart, TakeOptions{}); ok {
		t.Error("locked a session of a queue that has none")
	}
}

func TestLevelsAndClassesCountWhatIsReady(t *testing.T) {
	q := New(Config{LockFor: time.Minute}, 1)
	send(t, q, epochStart, Arrival{Level: 3, Class: 2}, 2)
	send(t, q, epochStart.Add(time.Second), Arrival{Level: 7, Class: 1}, 1)
	send(t, q, epochStart.Add(2*time.Second), Arrival{Level: 3, Class: 1}, 1)
	var s order.Survey
	q.Survey(&s, 1)
	want := map[Level]order.LevelStat{3: {Ready: 3, Oldest: epochStart}, 7: {Ready: 1, Oldest: epochStart.Add(time.Second)}}
	if !maps.Equal(s.Levels, want) {
		t.Errorf("levels %+v, want %+v", s.Levels, want)
	}
	serve(t, q, epochStart)
	for most := 1; !q.SeekOldest(&most); most = 1 {
	}
	for c, st := range q.Classes() {
		want := order.LevelStat{Ready: 1, Oldest: epochStart.Add(2 * time.Second)}
		if c == 2 {
			want = order.LevelStat{Ready: 2, Oldest: epochStart}
		}
		if st != want {
			t.Errorf("class %d: %+v, want %+v", c, st, want)
		}
	}
}

func TestReceiveAndDeleteNeedsNoLock(t *testing.T) {
	q := New(Config{}, 1)
	send(t, q, epochStart, Arrival{Body: Ref{At: 1, Size: 5}}, 1)
	var out Effects
	d, ok := q.Take(epochStart, TakeOptions{ReceiveAndDelete: true}, &out)
	if !ok || d.State != Ready || d.Token != (Token{}) || !d.LockedUntil.IsZero() {
		t.Errorf("took %+v, %t; want a ready message without a lock", d, ok)
	}
	if len(out.Freed) != 1 || q.Counts() != (Counts{}) {
		t.Errorf("freed %v, left %+v; want it removed", out.Freed, q.Counts())
	}
}

func TestTimesOutOfRangeAreClamped(t *testing.T) {
	q := New(Config{LockFor: time.Minute}, 1)
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var out Effects
	var seqs [2]SeqNo
	err := q.Enqueue(now, []Arrival{
		{NotBefore: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)}, // the far future: scheduled
		{NotBefore: time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC)}, // the past: at once
	}, seqs[:], &out)
	if err != nil {
		t.Fatal(err)
	}
	if c := q.Counts(); c.Scheduled != 1 || c.Ready != 1 {
		t.Fatalf("%d scheduled and %d ready, want one each", c.Scheduled, c.Ready)
	}
}

// A message may be away while a snapshot passes its number, and return before the
// snapshot ends.
func TestReturnBehindASnapshot(t *testing.T) {
	q := New(Config{LockFor: time.Minute}, 1)
	var out Effects
	if err := q.Enqueue(epochStart, []Arrival{{Body: Ref{At: 1, Size: 1}}}, make([]SeqNo, 1), &out); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	snap := q.Snapshot()
	snap.Step(items(1), nil, &out.Effects)
	d, _ := q.Take(epochStart, TakeOptions{ReceiveAndDelete: true}, &out)
	for written := out.Records(); written[len(written)-1][0] != record.KindEntries; written = out.Records() {
		snap.Step(items(1), nil, &out.Effects)
	}
	snap.Step(items(1), nil, &out.Effects) // all chunks of messages are written
	if err := q.Return(epochStart, &d, &out); err != nil {
		t.Fatal(err)
	}
	for done := false; !done; {
		done = snap.Step(items(1), nil, &out.Effects)
	}
	fresh := New(Config{}, 2)
	var replayed Effects
	for _, rec := range out.Records() {
		if err := fresh.Replay(rec, &replayed.Effects); err != nil {
			t.Fatal(err)
		}
	}
	if fresh.StateHash(epochStart) != q.StateHash(epochStart) {
		t.Errorf("replay has %+v, want %+v", fresh.Counts(), q.Counts())
	}
}
