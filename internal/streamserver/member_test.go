// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/group"
	"github.com/triagemq/triagemq/internal/stream"
)

// heard is a member and what it has heard.
type heard struct {
	*Member
	has group.Assignment
	err error
}

func (r *rig) join(id, run string) *heard {
	r.t.Helper()
	x, err := r.tryJoin(id, run)
	if err != nil {
		r.t.Fatalf("join: %v", err)
	}
	return x
}

func (r *rig) tryJoin(id, life string) (*heard, error) {
	r.t.Helper()
	x := &heard{}
	o := MemberOptions{Group: "g", ID: id, Run: life, Changed: func(a group.Assignment) { x.has = a }, Ended: func(err error) { x.err = err }}
	m, err := run(r, func() (*Member, error) { return r.h.Join(r.t.Context(), o) })
	x.Member = m
	return x, err
}

// owns compares what a member has heard: partition@epoch, with a ! if it is revoked.
func (x *heard) owns(t testing.TB, want string) {
	t.Helper()
	var got []string
	for _, g := range x.has.Grants {
		s := fmt.Sprintf("%d@%d", g.Partition, g.Epoch)
		if !g.RevokeBy.IsZero() {
			s += "!"
		}
		got = append(got, s)
	}
	if s := strings.Join(got, " "); s != want {
		t.Fatalf("%s has %q, want %q", x.opts.ID, s, want)
	}
}

// pass lets time go by, and settles.
func (r *rig) pass(d time.Duration, reporting ...*heard) {
	r.t.Helper()
	for end := r.now.Add(d); r.now.Before(end); {
		r.now = r.now.Add(min(end.Sub(r.now), time.Second))
		for _, x := range reporting {
			x.Report(Report{})
		}
		r.settle()
	}
}

func (r *rig) checkpoint(n int, epoch int64, seq stream.SeqNo) error {
	r.t.Helper()
	errs, err := run(r, func() ([]error, error) {
		return r.h.Checkpoint(r.t.Context(), "g", []group.Checkpoint{{Partition: n, Epoch: epoch, SeqNo: seq}})
	})
	if err != nil {
		return err
	}
	return errs[0]
}

func (r *rig) release(x *heard, n int, epoch int64) error {
	r.t.Helper()
	return r.do(func() error { return r.h.Release(r.t.Context(), "g", x.opts.ID, x.opts.Run, n, epoch, 0) })
}

// do is run for what returns nothing but an error.
func (r *rig) do(fn func() error) error {
	r.t.Helper()
	_, err := run(r, func() (struct{}, error) { return struct{}{}, fn() })
	return err
}

func (r *rig) mustDo(fn func() error) {
	r.t.Helper()
	if err := r.do(fn); err != nil {
		r.t.Fatal(err)
	}
}

const window = 200 * time.Millisecond

func TestMembersShareThePartitions(t *testing.T) {
	r := newRig(t, Settings{Partitions: 4})
	r.append(2, 10, 100)
	a := r.join("a", "1")
	r.pass(window)
	a.owns(t, "0@1 1@1 2@1 3@1")
	b := r.join("b", "1")
	r.pass(window)
	a.owns(t, "0@1 1@1 2@1! 3@1!")
	if err := r.checkpoint(2, 1, 4); err != nil {
		t.Fatal(err)
	}
	if err := r.release(a, 2, 1); err != nil {
		t.Fatal(err)
	}
	b.owns(t, "2@2")
	if got := b.has.Grants[0].Checkpoint; got != 4 {
		t.Errorf("b begins after %d", got)
	}
	if err := r.checkpoint(2, 1, 5); !errors.Is(err, group.ErrFenced) {
		t.Errorf("a checkpoint of the owner before: %v", err)
	}
	if err := r.checkpoint(2, 2, 3); !errors.Is(err, group.ErrBackwards) {
		t.Errorf("a checkpoint that goes back: %v", err)
	}
	var position *PositionError
	if err := r.checkpoint(2, 2, 10); !errors.As(err, &position) {
		t.Errorf("a checkpoint behind the end: %v", err)
	}
	if err := r.checkpoint(9, 2, 10); !errors.Is(err, ErrPartition) {
		t.Errorf("a checkpoint of another partition: %v", err)
	}
	b.Gone()
	r.settle()
	r.pass(time.Second, a)
	a.owns(t, "0@1 1@1 2@3 3@1")
	if b.err != nil {
		t.Errorf("ended after it was gone: %v", b.err)
	}
}

// What members hear is durable: a crash right after it finds it.
func TestNothingIsHeardBeforeItIsDurable(t *testing.T) {
	r := newRig(t, Settings{Partitions: 2})
	x := &heard{}
	joined := false
	o := MemberOptions{Group: "g", ID: "a", Run: "1", Changed: func(a group.Assignment) { x.has = a }}
	x.Member = &Member{hub: r.h, opts: o}
	if err := r.h.post(x.join, func(error) { joined = true }); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		r.step()
	}
	if joined || x.has.Version > 0 {
		t.Fatal("heard before anything was durable")
	}
	r.settle()
	if !joined || x.has.Version == 0 {
		t.Fatal("heard nothing")
	}
	r.now = r.now.Add(window)
	for range 5 {
		r.step()
	}
	x.owns(t, "")
	r.settle()
	x.owns(t, "0@1 1@1")
}

func TestMembersComeBackAfterACrash(t *testing.T) {
	r := newRig(t, Settings{Partitions: 4})
	r.append(0, 10, 100)
	r.join("a", "1")
	r.join("b", "1")
	r.pass(window)
	if err := r.checkpoint(0, 1, 7); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		r.crash(seed)
		r.settle()
		a, b := r.join("a", "1"), r.join("b", "1")
		r.pass(12*time.Second, a, b)
		a.owns(t, "0@1 1@1")
		b.owns(t, "2@1 3@1")
		if got := a.has.Grants[0].Checkpoint; got != 7 {
			t.Errorf("a begins after %d", got)
		}
	}
	r.crash(3)
	a := r.join("a", "2") // its process was restarted, and b does not come back
	r.pass(9*time.Second, a)
	a.owns(t, "0@2 1@2")
	r.pass(2*time.Second, a)
	a.owns(t, "0@2 1@2 2@2 3@2")
}

func TestTheSecondJoinEndsTheFirst(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	a := r.join("a", "1")
	r.pass(window)
	again := r.join("a", "2")
	r.settle()
	if !errors.Is(a.err, group.ErrTaken) {
		t.Errorf("the first ended with %v", a.err)
	}
	again.owns(t, "0@2")
	a.Gone() // says nothing about the second
	r.pass(2*time.Second, again)
	again.owns(t, "0@2")
}

func TestASilentMemberEnds(t *testing.T) {
	r := newRig(t, Settings{Partitions: 2})
	a, b := r.join("a", "1"), r.join("b", "1")
	r.pass(11*time.Second, a)
	if !errors.Is(b.err, group.ErrUnknownMember) {
		t.Errorf("ended with %v", b.err)
	}
	a.owns(t, "0@1 1@2")
}

// The epoch of a grant fences the readers of the owner before, and those it opens later.
func TestGrantsFenceReaders(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	r.append(0, 5, 100)
	a := r.join("a", "1")
	r.pass(window)
	var ended error
	r.reader(ReaderOptions{Group: "g", Epoch: new(int64(1)), Name: "a", Ended: func(err error) { ended = err }})
	b := r.join("b", "1")
	a.Gone()
	r.settle()
	r.pass(time.Second, b)
	b.owns(t, "0@2")
	if !errors.Is(ended, ErrStolen) {
		t.Errorf("the reader ended with %v", ended)
	}
	_, err := run(r, func() (*Reader, error) {
		return r.h.OpenReader(t.Context(), ReaderOptions{Group: "g", Epoch: new(int64(1)), Name: "a"})
	})
	if !errors.Is(err, ErrStolen) {
		t.Errorf("a reader with the epoch before: %v", err)
	}
	r.reader(ReaderOptions{Group: "g", Epoch: new(int64(2)), Name: "b"})
	r.reader(ReaderOptions{Group: "other", Epoch: new(int64(1))})
}

func TestRewind(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	start := r.now
	for range 600 { // more than a block
		r.append(0, 2, 20)
		r.now = r.now.Add(time.Second)
	}
	a := r.join("a", "1")
	r.pass(window, a)
	for i, x := range []struct {
		to   stream.Start
		want stream.SeqNo
	}{
		{stream.FromSeq(100), 99},
		{stream.Earliest(), -1},
		{stream.Latest(), 1199},
		{stream.FromTime(start.Add(10 * time.Second)), 19},
		{stream.FromTime(start.Add(300*time.Second + time.Millisecond)), 601},
		{stream.FromTime(start.Add(time.Hour)), 1199},
	} {
		got, err := run(r, func() ([]stream.SeqNo, error) { return r.h.Rewind(t.Context(), "g", []int{0}, x.to) })
		if err != nil || got[0] != x.want {
			t.Fatalf("%d: got %d, %v, want %d", i, got, err, x.want)
		}
		a.owns(t, fmt.Sprintf("0@%d", i+2))
		want := x.want
		if want < 0 {
			want = group.Beginning
		}
		if got := a.has.Grants[0].Checkpoint; got != want {
			t.Errorf("%d: begins after %d, want %d", i, got, want)
		}
	}
	_, err := run(r, func() ([]stream.SeqNo, error) { return r.h.Rewind(t.Context(), "g", []int{0}, stream.FromSeq(5000)) })
	if position := (*PositionError)(nil); !errors.As(err, &position) {
		t.Errorf("behind the end: %v", err)
	}
}

func TestClaimsByETag(t *testing.T) {
	r := newRig(t, Settings{Partitions: 2})
	claim := func(cs ...group.Ownership) []group.Ownership {
		t.Helper()
		won, err := run(r, func() ([]group.Ownership, error) { return r.h.Claim(t.Context(), "g", cs) })
		if err != nil {
			t.Fatal(err)
		}
		return won
	}
	first := claim(group.Ownership{Partition: 0, Owner: "a"}, group.Ownership{Partition: 1, Owner: "a"})
	if len(first) != 2 || len(claim(group.Ownership{Partition: 0, Owner: "b"})) != 0 {
		t.Fatalf("won %v", first)
	}
	r.crash(1)
	got, err := run(r, func() ([]group.Ownership, error) { return r.h.Claims(t.Context(), "g") })
	if err != nil || len(got) != 2 || got[1] != first[1] {
		t.Errorf("after a crash: %v, %v", got, err)
	}
	if won := claim(group.Ownership{Partition: 1, Owner: "b", ETag: first[1].ETag}); len(won) != 1 {
		t.Errorf("won %v", won)
	}
	r.append(0, 3, 10)
	if err := r.do(func() error { return r.h.SetCheckpoint(t.Context(), "g", group.Checkpoint{SeqNo: 2}) }); err != nil {
		t.Error(err)
	}
	r.join("m", "1")
	if _, err := run(r, func() ([]group.Ownership, error) { return r.h.Claim(t.Context(), "g", got) }); !errors.Is(err, group.ErrCoordinated) {
		t.Errorf("while there are members: %v", err)
	}
}

func TestGroupInfo(t *testing.T) {
	r := newRig(t, Settings{Partitions: 2})
	info := func() GroupInfo {
		t.Helper()
		i, err := run(r, func() (GroupInfo, error) { return r.h.Group(t.Context(), "g") })
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	r.append(0, 10, 100)
	if i := info(); len(i.Partitions) != 2 || i.Partitions[0].State != "free" || i.Partitions[0].LagEvents != 10 || r.h.groups != nil {
		t.Errorf("before anybody came: %+v", i)
	}
	a := r.join("a", "1")
	r.pass(window)
	if err := r.checkpoint(0, 1, 3); err != nil {
		t.Fatal(err)
	}
	a.Report(Report{Handled: []group.Progress{{Partition: 0, Handled: 5}}})
	r.settle()
	r.pass(29*time.Second, a)
	i := info()
	p := i.Partitions[0]
	if p.State != "owned" || p.Owner != "a" || p.Epoch != 1 || p.Checkpoint.SeqNo != 3 || p.Handled != 5 || p.LagEvents != 4 || p.LagBytes == 0 || p.Stuck {
		t.Errorf("got %+v", p)
	}
	if p.LagTime < 29*time.Second || p.CheckpointAge < 29*time.Second {
		t.Errorf("lag %v, checkpoint is %v old", p.LagTime, p.CheckpointAge)
	}
	if i.Partitions[1].LagEvents != 0 || len(i.Members) != 1 || i.Members[0].Partitions != 2 || !i.Members[0].Connected {
		t.Errorf("got %+v", i)
	}
	r.pass(time.Second, a)
	if i := info(); !i.Partitions[0].Stuck || i.Partitions[1].Stuck || len(i.Changes) != 2 {
		t.Errorf("after half a minute: %+v", i)
	}
	if err := r.do(func() error { return r.h.Pause(t.Context(), "g", []int{0}, r.now.Add(time.Hour)) }); err != nil {
		t.Fatal(err)
	}
	a.owns(t, "0@1! 1@1")
	if err := r.release(a, 0, 1); err != nil {
		t.Fatal(err)
	}
	if p := info().Partitions[0]; p.State != "paused" || p.PausedUntil.IsZero() {
		t.Errorf("paused: %+v", p)
	}
}

func TestForgottenGroup(t *testing.T) {
	r := newRig(t, Settings{Partitions: 2})
	if err := r.do(func() error { return r.h.ForgetGroup(t.Context(), "g") }); err != nil || r.h.groups != nil {
		t.Errorf("a group that never was: %v", err)
	}
	a := r.join("a", "1")
	r.pass(window)
	a.owns(t, "0@1 1@1")
	if err := r.do(func() error { return r.h.ForgetGroup(t.Context(), "g") }); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if !errors.Is(a.err, group.ErrUnknownMember) {
		t.Errorf("ended with %v", a.err)
	}
	r.crash(1)
	if n := r.h.groups.m.Names(); len(n) > 0 {
		t.Errorf("groups %v", n)
	}
}

// A hub whose groups nobody uses has no record of them; snapshots have what there is.
func TestGroupsInSnapshots(t *testing.T) {
	r := newRig(t, Settings{Partitions: 2})
	r.opts.SnapshotAfter = 1 << 14
	r.crash(0)
	if r.h.groups != nil {
		t.Fatal("there is a coordinator")
	}
	a := r.join("a", "1")
	r.pass(window)
	before := r.h.Snapshots()
	for range 200 {
		r.append(0, 1, 500)
		if err := r.checkpoint(0, 1, r.h.partitions[0].m.Next()-1); err != nil {
			t.Fatal(err)
		}
		a.Report(Report{})
	}
	if r.h.Snapshots() == before {
		t.Fatal("there was no snapshot")
	}
	r.crash(1)
	a = r.join("a", "1")
	r.pass(window)
	a.owns(t, "0@1 1@1")
	if got := a.has.Grants[0].Checkpoint; got != 199 {
		t.Errorf("begins after %d", got)
	}
	r.set.Partitions = 3
	if err := r.do(func() error { return r.h.Configure(t.Context(), r.set) }); err != nil {
		t.Fatal(err)
	}
	r.pass(window, a)
	a.owns(t, "0@1 1@1 2@1")
}

func TestStoppedHubEndsMembers(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	a := r.join("a", "1")
	(*host)(r.h).Stopped(ErrStopped)
	if !errors.Is(a.err, ErrStopped) {
		t.Errorf("ended with %v", a.err)
	}
}

// What the link before says late is not said about the process that has its place.
func TestTheLinkBeforeDoesNotSpeakForTheNext(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	a := r.join("a", "1")
	r.pass(window)
	again := r.join("a", "2")
	if err := r.do(func() error { return a.Leave(t.Context()) }); !errors.Is(err, group.ErrTaken) {
		t.Errorf("the first leaves: %v", err)
	}
	r.pass(window)
	again.owns(t, "0@2")
	r.pass(11*time.Second, a)
	if !errors.Is(again.err, group.ErrUnknownMember) {
		t.Errorf("silent, while the link before reports: %v", again.err)
	}
}

// What a member has to hear before it joins again is not for its new link.
func TestNewsOfTheLinkBefore(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	a := r.join("a", "1")
	r.pass(window)
	var ended error
	again := &Member{hub: r.h, opts: MemberOptions{Group: "g", ID: "a", Run: "1", Ended: func(err error) { ended = err }}}
	for _, fn := range []func(*engine.Tx) error{r.h.forget("g"), again.join} { // in one step
		if err := r.h.post(fn, func(error) {}); err != nil {
			t.Fatal(err)
		}
	}
	r.settle()
	if ended != nil || !errors.Is(a.err, group.ErrUnknownMember) {
		t.Errorf("the new link ended with %v, the one before with %v", ended, a.err)
	}
}

// A hub that stops ends also those who have not heard yet that they were replaced.
func TestStoppedHubEndsThoseWhoWereReplaced(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	a := r.join("a", "1")
	again := &Member{hub: r.h, opts: MemberOptions{Group: "g", ID: "a", Run: "2"}}
	if err := r.h.post(again.join, func(error) {}); err != nil {
		t.Fatal(err)
	}
	r.step()
	(*host)(r.h).Stopped(ErrStopped)
	if a.err == nil {
		t.Error("it never hears that it has ended")
	}
}

// A pause of all partitions is one group of the journal. One that does not fit, because many
// members with long names are kept from the partitions, is refused, and does not stop the hub.
func TestAPauseThatIsTooLargeIsRefused(t *testing.T) {
	r := newRig(t, Settings{Partitions: 64})
	for i := range 8 {
		x := r.join(strings.Repeat("i", 200)+fmt.Sprint(i), "1")
		r.pass(time.Second, x)
		for _, g := range x.has.Grants {
			if err := r.do(func() error {
				return r.h.Release(t.Context(), "g", x.opts.ID, x.opts.Run, g.Partition, g.Epoch, time.Hour)
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.do(func() error { return x.Leave(t.Context()) }); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Second)
	}
	pause := func(partitions ...int) error {
		return r.do(func() error { return r.h.Pause(t.Context(), "g", partitions, r.now.Add(time.Hour)) })
	}
	if err := pause(); !errors.Is(err, engine.ErrTooLarge) {
		t.Errorf("all: %v, want %v", err, engine.ErrTooLarge)
	}
	if err := pause(1, 2, 3); err != nil {
		t.Errorf("some: %v", err)
	}
}

// So is a member whose partitions would not fit, and a rewind of all.
func TestAMemberWhosePartitionsDoNotFitIsRefused(t *testing.T) {
	r := newRig(t, Settings{Partitions: 512})
	if _, err := r.tryJoin(strings.Repeat("i", 200), "1"); !errors.Is(err, engine.ErrTooLarge) {
		t.Errorf("join: %v, want %v", err, engine.ErrTooLarge)
	}
	all := make([]int, 512)
	for i := range all {
		all[i] = i
	}
	err := r.do(func() error {
		_, err := r.h.Rewind(t.Context(), "g", all, stream.Earliest())
		return err
	})
	if !errors.Is(err, engine.ErrTooLarge) {
		t.Errorf("rewind: %v, want %v", err, engine.ErrTooLarge)
	}
}

// What waits for a member that is away ends with the right by which it had joined.
func TestMembersThatAreAwayAreReviewed(t *testing.T) {
	r := newRig(t, Settings{Partitions: 2})
	join := func(id, life string) *Member {
		m, err := run(r, func() (*Member, error) {
			return r.h.Join(t.Context(), MemberOptions{Group: "g", ID: id, Run: life, Keep: time.Hour})
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	review := func(want string) {
		t.Helper()
		r.mustDo(func() error { return r.h.ReviewMembers(t.Context()) })
		info, err := run(r, func() (GroupInfo, error) { return r.h.Group(t.Context(), "g") })
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range info.Members {
			got = append(got, m.ID)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("members %q, want %q", s, want)
		}
	}
	holds := true
	right := Right{Holds: func() bool { return holds }}
	a, b, c := join("a", "1"), join("b", "1"), join("c", "1")
	r.pass(window)
	a.GoneBy(right)
	b.GoneBy(right)
	c.GoneBy(Right{Holds: func() bool { return true }})
	review("a b c")
	join("b", "1")
	holds = false
	review("b c")
	if n := len(r.h.groups.away); n != 1 {
		t.Errorf("%d members are looked at, want the one that is away", n)
	}
	join("d", "1").GoneBy(Right{Ends: r.now.Add(-time.Hour)})
	r.pass(time.Second)
	review("b c")
	r.mustDo(func() error { return r.h.ForgetGroup(t.Context(), "g") })
	review("")
	if n := len(r.h.groups.away); n != 0 {
		t.Errorf("%d members are looked at, and there are none", n)
	}
}

// However many rewinds of a partition come at once, they take turns.
func TestManyRewindsAtOnce(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	r.join("a", "1")
	r.pass(window)
	r.append(0, 100, 100)
	const rewinds = 1000
	done := make(chan error, rewinds)
	_, err := run(r, func() (int, error) {
		for n := range rewinds {
			go func() {
				_, err := r.h.Rewind(t.Context(), "g", []int{0}, stream.FromSeq(stream.SeqNo(n%100)))
				done <- err
			}()
		}
		var errs []error
		for range rewinds {
			errs = append(errs, <-done)
		}
		return 0, errors.Join(errs...)
	})
	if err != nil {
		t.Errorf("%d rewinds at once: %v", rewinds, err)
	}
	if epoch := r.h.groups.m.Epoch("g", 0); epoch != 1+rewinds {
		t.Errorf("epoch %d after a grant and %d rewinds", epoch, rewinds)
	}
}
