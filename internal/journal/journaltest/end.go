// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
)

// wantEnded checks that a claim that has ended writes nothing and gets ErrFenced.
func (o owner) wantEnded(t *testing.T, s Store, watched *statuses, keep journal.Retain) {
	t.Helper()
	if st := o.j.Status(o.Claim); !errors.Is(st.Err, journal.ErrFenced) {
		t.Errorf("status of a claim that has ended: %+v, want %v", st, journal.ErrFenced)
	}
	watched.wait(t, s, "the claim has ended", func(st journal.Status) bool { return errors.Is(st.Err, journal.ErrFenced) })
	if _, err := o.keepUp("late"); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("append after the end of a claim: %v, want %v", err, journal.ErrFenced)
	}
	if _, err := o.send("late"); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("send after the end of a claim: %v, want %v", err, journal.ErrFenced)
	}
	if err := o.j.Truncate(t.Context(), o.Claim, keep); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("truncate after the end of a claim: %v, want %v", err, journal.ErrFenced)
	}
	if err := o.j.Release(t.Context(), o.Claim); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("release after the end of a claim: %v, want %v", err, journal.ErrFenced)
	}
	late := o.watch()
	late.wait(t, s, "watched after its end", func(st journal.Status) bool { return errors.Is(st.Err, journal.ErrFenced) })
}

func releasedWritesNothing(t *testing.T, s Store) {
	j := s.Open(t)
	o, _ := claim(t, j, 1)
	other, _ := claim(t, j, 2)
	watched, untouched := o.watch(), other.watch()
	want := o.add(t, "one", "two")
	if err := j.Release(t.Context(), o.Claim); err != nil {
		t.Fatalf("release: %v", err)
	}
	if st := j.Status(other.Claim); st.Durable < want[1].at || st.Err != nil {
		t.Errorf("status of another shard after a release is %+v, want durable up to %d", st, want[1].at)
	}
	o.wantEnded(t, s, watched, journal.Retain{From: want[1].at})

	next, got := claim(t, j, 1)
	wantEntries(t, got, want)
	want = append(want, next.add(t, "three")...)
	other.add(t, "of another shard")
	s.Settle(t)
	if st := untouched.last(); st.Err != nil {
		t.Errorf("the owner of another shard gets %v", st.Err)
	}
	_, got = claim(t, s.Open(t), 1)
	wantEntries(t, got, want)
}

func fencedIsTold(t *testing.T, s Store) {
	j := s.Open(t)
	old, _ := claim(t, j, 1)
	other, _ := claim(t, j, 2)
	watched, untouched := old.watch(), other.watch()
	want := old.add(t, "one")
	now, _ := claim(t, j, 1)
	current := now.watch()
	old.wantEnded(t, s, watched, journal.Retain{From: want[0].at})
	want = append(want, now.add(t, "two")...)
	other.add(t, "of another shard")
	s.Settle(t)
	for name, w := range map[string]*statuses{"the new owner": current, "the owner of another shard": untouched} {
		if st := w.last(); st.Err != nil {
			t.Errorf("%s gets %v", name, st.Err)
		}
	}
	_, got := claim(t, s.Open(t), 1)
	wantEntries(t, got, want)
}

func statusIsKnown(t *testing.T, s Store) {
	o, _ := claim(t, s.Open(t), 1)
	st := o.j.Status(o.Claim)
	if st.Full || st.Err != nil || !st.Lease.IsZero() && !time.Now().Before(st.Lease) {
		t.Errorf("status of a new claim: %+v", st)
	}
	e := o.add(t, "one")
	s.Settle(t)
	if st := o.j.Status(o.Claim); st.Durable < e[0].at {
		t.Errorf("after settling, status %+v, want durable up to %d", st, e[0].at)
	}
}

// contextEndsCalls: on a disk that hangs no call waits for longer than its context.
func contextEndsCalls(t *testing.T, s Store) {
	d := diskOf(t, s)
	j := s.Open(t)
	o, _ := claim(t, j, 1)
	leaving, _ := claim(t, j, 2)
	first := o.add(t, "stored")[0]
	s.Settle(t)

	resume := d.Hang()
	leaving.add(t, "not stored yet")
	reason := errors.New("the caller has stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	calls := map[string]func() error{
		"claim":    func() error { _, _, err := j.Claim(ctx, 3, 4); return err },
		"truncate": func() error { return j.Truncate(ctx, o.Claim, journal.Retain{From: first.at}) },
		"release":  func() error { return j.Release(ctx, leaving.Claim) },
		"read": func() error {
			_, err := journal.ReadOne(ctx, j, first.at, nil)
			return err
		},
	}
	ends := make(map[string]chan error)
	for name, call := range calls {
		end := make(chan error, 1)
		ends[name] = end
		go func() { end <- call() }() // waited for below
	}
	cancel(reason)
	for name, end := range ends {
		select {
		case err := <-end:
			if !errors.Is(err, reason) {
				t.Errorf("%s on a disk that hangs, after its context has ended: %v, want %v", name, err, reason)
			}
		case <-time.After(patience):
			t.Errorf("%s on a disk that hangs does not end with its context", name)
		}
	}
	resume()
	s.Settle(t)
	o.wantRead(t, first)
	o.add(t, "it goes on")
	if _, err := leaving.keepUp("late"); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("append after a release whose caller did not wait: %v, want %v", err, journal.ErrFenced)
	}
	if _, _, err := j.Claim(t.Context(), 3); err != nil {
		t.Errorf("claim after one whose caller did not wait: %v", err)
	}
}

// contextEndsReplay: a start that is canceled does not read the whole log.
func contextEndsReplay(t *testing.T, s Store) {
	o, _ := claim(t, s.Open(t), 1)
	all := o.fill(t, o.Segment(o.add(t, "first")[0].at)+2)
	s.Settle(t)
	reason := errors.New("the caller has stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	_, records, err := s.Open(t).Claim(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err = range records {
		if err != nil {
			break
		}
		n++
		cancel(reason)
	}
	if !errors.Is(err, reason) || n > 1 {
		t.Errorf("replayed %d of %d records after the context had ended, then %v; want %v", n, len(all), err, reason)
	}
}
