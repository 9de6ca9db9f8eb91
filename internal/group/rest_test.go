// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/stream"
)

// However members came and went: once all that are there report and obey, every partition
// that somebody may have has an owner, and nothing moves any more.
func TestEveryHistoryComesToRest(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		r := newRig(t, 1+rnd.IntN(9))
		for range 60 {
			r.anything(rnd)
			if rnd.IntN(3) == 0 {
				r.pass(time.Duration(rnd.IntN(2000)) * time.Millisecond)
			}
			if rnd.IntN(3) == 0 {
				r.obey()
			}
		}
		for range 60 {
			r.pass(time.Second)
			r.obey()
		}
		r.rests(seed)
		if t.Failed() {
			return
		}
	}
}

// anything does something that members and operators do.
func (r *rig) anything(rnd *rand.Rand) {
	id := fmt.Sprintf("m%d", rnd.IntN(6))
	n := rnd.IntN(r.partitions)
	owner, epoch := r.Owner(grp, n)
	switch rnd.IntN(14) {
	case 0, 1, 2, 3:
		_ = r.Join(r.now, grp, Member{ID: id, Run: fmt.Sprint(rnd.IntN(2)), Keep: time.Duration(rnd.IntN(2)) * 3 * time.Second}, &r.out)
		delete(r.ends, id)
	case 4, 5:
		r.Gone(r.now, grp, id)
		delete(r.has, id)
	case 6:
		_ = r.Leave(r.now, grp, id, &r.out)
	case 7, 8:
		if owner != "" {
			r.must(r.Release(r.now, grp, owner, n, epoch, time.Duration(rnd.IntN(3))*20*time.Second, &r.out))
		}
	case 9:
		_ = r.MoveAway(r.now, grp, n, time.Duration(rnd.IntN(100))*time.Second, &r.out)
	case 10:
		r.must(r.Pause(r.now, grp, []int{n}, r.now.Add(time.Duration(rnd.IntN(100)-30)*time.Second), &r.out))
	case 11:
		r.must(r.Rewind(r.now, grp, n, stream.SeqNo(rnd.IntN(100)), &r.out))
	case 12:
		_ = r.Checkpoint(r.now, grp, Checkpoint{Partition: n, Epoch: epoch, SeqNo: stream.SeqNo(rnd.IntN(100))}, &r.out)
	case 13:
		if r.partitions < 12 {
			r.SetPartitions(r.now, r.partitions+1)
		}
	}
	r.hear()
}

// rests compares a group that has had its time with what it promises.
func (r *rig) rests(seed uint64) {
	r.Helper()
	g := r.find(grp)
	if g == nil {
		return
	}
	bars, paused := false, 0
	for n, p := range g.used() {
		may := 0
		for _, m := range g.members {
			if m.canTake() && !p.cools(m.ID, r.now) {
				may++
			}
			bars = bars || p.cools(m.ID, r.now)
		}
		if p.isPaused(r.now) {
			paused++
			may = 0
		}
		if (p.owner != "") != (may > 0) {
			r.Errorf("seed %d: %d members may have partition %d, the owner is %q", seed, may, n, p.owner)
		}
		if p.revoked() {
			r.Errorf("seed %d: partition %d still moves from %q to %q", seed, n, p.owner, p.look().next)
		}
	}
	if len(g.members) > 0 && len(g.parts) < r.partitions {
		r.Errorf("seed %d: %d of %d partitions are known", seed, len(g.parts), r.partitions)
	}
	least, most := 1<<30, 0
	for _, m := range g.members {
		least, most = min(least, g.held(m.ID)), max(most, g.held(m.ID))
		if m.leaving || !m.connected {
			r.Errorf("seed %d: %q is still there", seed, m.ID)
		}
		has := r.has[m.ID].Grants
		if len(has) != g.held(m.ID) {
			r.Errorf("seed %d: %q has heard of %d partitions and has %d", seed, m.ID, len(has), g.held(m.ID))
		}
		for _, x := range has {
			if p := g.at(x.Partition); p == nil || p.owner != m.ID || p.epoch != x.Epoch {
				r.Errorf("seed %d: %q has heard %+v, but partition %d is %q's with epoch %d", seed, m.ID, x, x.Partition, p.owner, p.epoch)
			}
		}
	}
	if !bars && len(g.members) > 0 && most-least > 1 {
		r.Errorf("seed %d: members have %d to %d", seed, least, most)
	}
}

// A group that was deleted and made again does not use its epochs again: a process that
// has slept through it cannot move the checkpoints of the new one.
func TestAForgottenGroupDoesNotReuseEpochs(t *testing.T) {
	r := newRig(t, 1)
	r.join("a")
	r.pass(joinWindow)
	r.must(r.Rewind(r.now, grp, 0, 5, &r.out))
	old := r.Epoch(grp, 0)
	r.Forget(grp, &r.out)
	r.hear()
	r.join("b")
	r.pass(joinWindow)
	if now := r.Epoch(grp, 0); now <= old {
		t.Fatalf("epoch %d after %d", now, old)
	}
	for e := range old + 1 {
		r.want(r.checkpoint(0, e, 50), ErrFenced)
	}
	s := New()
	for _, rec := range r.out.Records() {
		r.must(s.Replay(rec, new(machine.Effects)))
	}
	if got, want := describe(s), describe(r.Groups); got != want {
		t.Errorf("after a restart:\n%s\nwant\n%s", got, want)
	}
}

// A member that leaves does not come back: its partitions wait for it no longer than it takes
// to say that they are released.
func TestKeepIsNotForThoseWhoLeave(t *testing.T) {
	r := newRig(t, 1)
	r.must(r.Join(r.now, grp, Member{ID: "a", Run: "1", Keep: time.Hour}, &r.out))
	r.pass(joinWindow)
	r.join("b")
	r.pass(joinWindow)
	r.must(r.Leave(r.now, grp, "a", &r.out))
	r.Gone(r.now, grp, "a")
	recs := r.out.Records()
	again := &rig{T: t, Groups: New(), now: r.now, has: map[string]Assignment{}, ends: map[string]error{}}
	for _, rec := range recs {
		r.must(again.Replay(rec, &again.out))
	}
	r.pass(2 * time.Second)
	r.owns("b: 0@2")
	again.SetPartitions(again.now, 1)
	again.join("b")
	again.pass(silence + time.Second)
	again.owns("b: 0@2")
}

// A cool-down lasts for up to a day. It keeps the ID that the group has, and not the request
// that the ID was a part of.
func TestACoolDownKeepsNoRequest(t *testing.T) {
	r := newRig(t, 1)
	r.join("a")
	r.pass(joinWindow)
	request := "a" + strings.Repeat(" and much more", 1000)
	r.must(r.Release(r.now, grp, request[:1], 0, 1, time.Hour, &r.out))
	if g := r.find(grp); unsafe.StringData(g.parts[0].cooling()[0].member) == unsafe.StringData(request) {
		t.Error("the request is kept")
	}
}

// A process that was restarted counts as there when what it had is given out again.
func TestARestartedMemberKeepsWhatWasToMoveToOneThatIsGone(t *testing.T) {
	r := newRig(t, 4)
	r.join("a", "b")
	r.pass(joinWindow)
	r.must(r.Join(r.now, grp, Member{ID: "c", Run: "1", Keep: time.Hour}, &r.out))
	r.pass(joinWindow)
	r.owns("a: 0@1 1@1, b: 2@1 3@1!, c:")
	r.Gone(r.now, grp, "c")
	r.Gone(r.now, grp, "b")
	r.must(r.Join(r.now, grp, Member{ID: "b", Run: "2"}, &r.out))
	r.pass(joinWindow)
	r.owns("a: 0@1 1@1, b: 2@2 3@2, c:")
}

// Whatever a tick does, it does not write more at once than fits into a group of the journal.
func TestATickIsBounded(t *testing.T) {
	r := newRig(t, maxPartitions/16)
	const groups = 20
	id := strings.Repeat("x", maxName)
	for n := range groups {
		r.must(r.Join(r.now, fmt.Sprint("group", n), Member{ID: id, Run: "1"}, &r.out))
	}
	r.now = r.now.Add(joinWindow)
	ticks := 0
	for at, ok := r.NextDeadline(); ok && !at.After(r.now); at, ok = r.NextDeadline() {
		if ticks++; ticks > groups+1 {
			t.Fatal("it does not come to an end")
		}
		before := r.out.Size()
		r.Tick(r.now, &r.out)
		if n := r.out.Size() - before; n > 1<<20 {
			t.Fatalf("one tick writes %d bytes", n)
		}
	}
	r.hear()
	for n := range groups {
		if owner, _ := r.Owner(fmt.Sprint("group", n), r.partitions-1); owner != id {
			t.Fatalf("group %d has not had its turn", n)
		}
	}
}

// A group that had one member for a while does not look as if the broker had not run when
// another joins: that would excuse those who are silent.
func TestAnOldComparisonIsNoStall(t *testing.T) {
	r := newRig(t, 1)
	r.join("a", "b")
	r.pass(joinWindow)
	r.Gone(r.now, grp, "b")
	r.pass(5 * time.Minute)
	r.join("b")
	r.must(r.Pause(r.now, grp, []int{0}, time.Time{}, &r.out))
	if r.due.Before(r.now) {
		t.Errorf("due %v ago", r.now.Sub(r.due))
	}
}

// Versions rise over a restart, also if nothing was stored since the first of many.
func TestVersionsRiseOverARestart(t *testing.T) {
	r := newRig(t, 2)
	r.join("a", "b")
	r.pass(joinWindow)
	for n := range 20 {
		r.SetPartitions(r.now, 3+n)
		r.hear()
	}
	before := r.has["a"].Version
	again := &rig{T: t, Groups: New(), now: r.now.Add(time.Second), has: map[string]Assignment{}, ends: map[string]error{}}
	for _, rec := range r.out.Records() {
		r.must(again.Replay(rec, &again.out))
	}
	again.SetPartitions(again.now, 22)
	again.join("a")
	if now := again.has["a"].Version; now <= before {
		t.Errorf("version %d after %d", now, before)
	}
}

// A report that was on its way when the partition was rewound is about what is handled again
// now: it does not hide the lag. What it says about events that are gone counts.
func TestAReportFromBeforeARewind(t *testing.T) {
	r := newRig(t, 2)
	r.join("a")
	r.pass(joinWindow)
	report := func(epoch int64, handled stream.SeqNo, skipped uint64) {
		r.must(r.Report(r.now, grp, "a", []Progress{{Partition: 0, Epoch: epoch, Handled: handled, Skipped: skipped}}))
	}
	report(1, 99, 0)
	r.must(r.Rewind(r.now, grp, 0, 9, &r.out))
	report(1, 120, 5)
	p := r.Info(r.now, grp).Partitions[0]
	if p.Handled != None || p.Checkpoint.SeqNo != 9 || p.Skipped != 5 {
		t.Errorf("after a report with the epoch before: handled %d, checkpoint %d, skipped %d", p.Handled, p.Checkpoint.SeqNo, p.Skipped)
	}
	report(2, 30, 0)
	if p := r.Info(r.now, grp).Partitions[0]; p.Handled != 30 || p.Skipped != 5 {
		t.Errorf("after a report of the rewound one: handled %d, skipped %d", p.Handled, p.Skipped)
	}
	report(0, 31, 0) // of a client that tells no epochs
	if p := r.Info(r.now, grp).Partitions[0]; p.Handled != 31 {
		t.Errorf("after a report without an epoch: handled %d", p.Handled)
	}
}

// The younger run of a member wins, whichever of them comes back first, also when the member
// was forgotten meanwhile. After a restart a run that says that it comes back is refused, if
// the other one is still a member.
func TestTheYoungerRunWins(t *testing.T) {
	r := newRig(t, 2)
	join := func(run string, back bool) error {
		return r.Join(r.now, grp, Member{ID: "m", Run: run, Back: back}, &r.out)
	}
	r.must(join("old", false))
	r.pass(joinWindow)
	r.Gone(r.now, grp, "m")
	r.must(join("young", false))
	r.want(join("old", false), ErrTaken)
	r.want(join("old", true), ErrTaken)
	r.pass(joinWindow)
	r.owns("m: 0@2 1@2")
	r.Gone(r.now, grp, "m")
	r.want(join("old", true), ErrTaken)
	r.pass(time.Second)
	if r.Groups.Run(grp, "m") != "" {
		t.Fatal("it was not forgotten")
	}
	r.want(join("old", true), ErrTaken)
	r.must(join("young", true))
	r.pass(joinWindow)

	r.restart(2)
	r.want(join("old", true), ErrTaken)
	r.must(join("young", true))
	r.must(join("next", false))
	if err := r.Check(); err != nil {
		t.Error(err)
	}
}
