// SPDX-License-Identifier: Apache-2.0

package group

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/stream"
)

// rig is the groups of one hub, and what their members have heard.
type rig struct {
	*testing.T
	*Groups
	out  machine.Effects
	now  time.Time
	has  map[string]Assignment
	ends map[string]error
}

func newRig(t *testing.T, partitions int) *rig {
	r := &rig{T: t, Groups: New(), now: start, has: map[string]Assignment{}, ends: map[string]error{}}
	r.Create(&r.out)
	r.SetPartitions(r.now, partitions)
	return r
}

// restart replays the history.
func (r *rig) restart(partitions int) {
	r.Helper()
	after := New()
	for _, rec := range r.out.Records() {
		if err := after.Replay(rec, &r.out); err != nil {
			r.Fatal(err)
		}
	}
	r.Groups = after
	r.SetPartitions(r.now, partitions)
	r.Tick(r.now, &r.out)
}

const grp = "g"

func (r *rig) must(err error) {
	r.Helper()
	r.want(err, nil)
}

func (r *rig) want(err, want error) {
	r.Helper()
	if !errors.Is(err, want) {
		r.Fatalf("got %v, want %v", err, want)
	}
	r.hear()
}

// hear takes over the news.
func (r *rig) hear() {
	r.Helper()
	if err := r.Check(); err != nil {
		r.Fatal(err)
	}
	for _, n := range r.News() {
		if n.Err != nil {
			r.ends[n.Member] = n.Err
			delete(r.has, n.Member)
			continue
		}
		if n.Assignment.Version <= r.has[n.Member].Version {
			r.Fatalf("version %d after %d", n.Assignment.Version, r.has[n.Member].Version)
		}
		r.has[n.Member] = n.Assignment
	}
}

// pass lets time go by. Members that are connected report.
func (r *rig) pass(d time.Duration) {
	r.Helper()
	for end := r.now.Add(d); r.now.Before(end); {
		at, ok := r.NextDeadline()
		if next := r.now.Add(time.Second); !ok || at.After(next) {
			at = next
		}
		if at.After(end) {
			at = end
		}
		if !at.After(r.now) && at != end {
			at = r.now.Add(time.Millisecond)
		}
		r.now = at
		if g := r.find(grp); g != nil {
			for _, m := range g.members {
				if m.connected && !strings.HasPrefix(m.ID, "silent") {
					_ = r.Report(r.now, grp, m.ID, nil)
				}
			}
		}
		r.Tick(r.now, &r.out)
		r.hear()
	}
}

func (r *rig) join(ids ...string) {
	r.Helper()
	for _, id := range ids {
		r.must(r.Join(r.now, grp, Member{ID: id, Run: "1"}, &r.out))
	}
}

// obey has all members release what is revoked.
func (r *rig) obey() {
	r.Helper()
	for _, m := range r.ids() {
		for _, g := range r.has[m].Grants {
			if !g.RevokeBy.IsZero() {
				r.must(r.Release(r.now, grp, m, g.Partition, g.Epoch, 0, &r.out))
			}
		}
	}
}

func (r *rig) ids() (ids []string) {
	for id := range r.has {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// owns shows who has heard that they have what: partition@epoch, with a ! if it is revoked.
func (r *rig) owns(want string) {
	r.Helper()
	var lines []string
	for _, id := range r.ids() {
		line := id + ":"
		for _, g := range r.has[id].Grants {
			line += fmt.Sprintf(" %d@%d", g.Partition, g.Epoch)
			if !g.RevokeBy.IsZero() {
				line += "!"
			}
		}
		lines = append(lines, line)
	}
	if got := strings.Join(lines, ", "); got != want {
		r.Fatalf("got  %s\nwant %s", got, want)
	}
}

func (r *rig) checkpoint(n int, epoch int64, seq stream.SeqNo) error {
	return r.Checkpoint(r.now, grp, Checkpoint{Partition: n, Epoch: epoch, SeqNo: seq}, &r.out)
}

func TestPlannedMove(t *testing.T) {
	r := newRig(t, 4)
	r.join("a")
	r.owns("a:")
	r.pass(joinWindow)
	r.owns("a: 0@1 1@1 2@1 3@1")
	r.join("b")
	r.pass(joinWindow - time.Millisecond)
	r.owns("a: 0@1 1@1 2@1 3@1, b:")
	r.pass(time.Millisecond)
	r.owns("a: 0@1 1@1 2@1! 3@1!, b:")
	r.must(r.checkpoint(2, 1, 77))
	r.must(r.Release(r.now, grp, "a", 2, 1, 0, &r.out))
	r.owns("a: 0@1 1@1 3@1!, b: 2@2")
	if got := r.has["b"].Grants[0].Checkpoint; got != 77 {
		t.Errorf("b starts after %d", got)
	}
	r.want(r.checkpoint(2, 1, 78), ErrFenced)
	r.pass(revokeFor) // it does not release the other
	r.owns("a: 0@1 1@1, b: 2@2 3@2")
	if r.find(grp).moves != 2 {
		t.Errorf("%d moves", r.find(grp).moves)
	}
	r.want(r.Release(r.now, grp, "a", 3, 1, 0, &r.out), ErrFenced)
	r.want(r.Release(r.now, grp, "x", 3, 1, 0, &r.out), ErrUnknownMember)
}

func TestManyJoinAtOnce(t *testing.T) {
	r := newRig(t, 128)
	for i := range 8 {
		r.join(fmt.Sprint("m", i))
	}
	r.pass(joinWindow)
	r.join("new")
	before := r.now
	r.pass(joinWindow)
	r.obey()
	if took := r.now.Sub(before); took > time.Second {
		t.Errorf("took %v", took)
	}
	g := r.find(grp)
	if g.moves != 14 {
		t.Errorf("%d moves, want 14", g.moves)
	}
	for _, m := range g.members {
		if n := g.held(m.ID); n < 14 || n > 15 {
			t.Errorf("%s has %d", m.ID, n)
		}
	}
}

func TestLostConnection(t *testing.T) {
	r := newRig(t, 4)
	r.join("a", "b")
	r.pass(joinWindow)
	r.owns("a: 0@1 1@1, b: 2@1 3@1")
	r.Gone(r.now, grp, "b")
	r.pass(grace - time.Millisecond)
	r.join("b") // the same run
	r.pass(time.Second)
	r.owns("a: 0@1 1@1, b: 2@1 3@1")
	r.Gone(r.now, grp, "b")
	r.pass(grace)
	r.owns("a: 0@1 1@1 2@2 3@2")
	r.want(r.ends["b"], ErrUnknownMember)
	r.want(r.Report(r.now, grp, "b", nil), ErrUnknownMember)
}

func TestKeepWaitsForAMember(t *testing.T) {
	r := newRig(t, 2)
	r.must(r.Join(r.now, grp, Member{ID: "a", Run: "1", Keep: time.Minute}, &r.out))
	r.join("b")
	r.pass(joinWindow)
	r.Gone(r.now, grp, "a")
	r.pass(time.Minute - time.Millisecond)
	r.join("c") // gets nothing of what waits, and takes nothing of b's only one
	r.owns("a: 0@1, b: 1@1, c:")
	r.must(r.Join(r.now, grp, Member{ID: "a", Run: "2", Keep: time.Minute}, &r.out))
	r.owns("a: 0@2, b: 1@1, c:")
}

func TestSilentMember(t *testing.T) {
	r := newRig(t, 2)
	r.join("a", "silent")
	r.pass(silence - time.Millisecond)
	r.owns("a: 0@1, silent: 1@1")
	r.pass(time.Millisecond)
	r.owns("a: 0@1 1@2")
	r.want(r.ends["silent"], ErrUnknownMember)
}

// A broker that was stopped for a while has heard nobody, and gives nobody up for that.
func TestStalledBroker(t *testing.T) {
	r := newRig(t, 2)
	r.join("a", "silent")
	r.pass(joinWindow)
	r.now = r.now.Add(time.Hour)
	r.Tick(r.now, &r.out)
	r.hear()
	r.owns("a: 0@1, silent: 1@1")
	r.pass(silence)
	r.owns("a: 0@1 1@2")
}

func TestAnotherRun(t *testing.T) {
	r := newRig(t, 4)
	r.join("a")
	r.pass(joinWindow)
	r.join("b")
	r.pass(joinWindow)
	r.owns("a: 0@1 1@1 2@1! 3@1!, b:")
	r.must(r.Join(r.now, grp, Member{ID: "a", Run: "2"}, &r.out)) // what moves needs no release
	r.owns("a: 0@2 1@2, b: 2@2 3@2")
	r.want(r.checkpoint(0, 1, 5), ErrFenced)
	r.must(r.checkpoint(0, 2, 5))
}

func TestLeave(t *testing.T) {
	r := newRig(t, 2)
	r.join("a", "b", "c")
	r.pass(joinWindow)
	r.must(r.Leave(r.now, grp, "c", &r.out)) // it has nothing
	r.want(r.ends["c"], ErrLeft)
	r.must(r.Leave(r.now, grp, "a", &r.out))
	r.pass(joinWindow)
	r.owns("a: 0@1!, b: 1@1")
	r.obey()
	r.owns("b: 0@2 1@1")
	r.want(r.ends["a"], ErrLeft)
	r.must(r.Leave(r.now, grp, "b", &r.out)) // nobody is left to take over
	r.pass(joinWindow)
	r.owns("b: 0@2! 1@1!")
	r.pass(revokeFor)
	r.want(r.ends["b"], ErrLeft)
	if n := len(r.find(grp).members); n != 0 {
		t.Errorf("%d members", n)
	}
	r.want(r.Leave(r.now, grp, "b", &r.out), ErrUnknownMember)
}

func TestRestart(t *testing.T) {
	r := newRig(t, 4)
	r.join("a", "b")
	r.pass(joinWindow)
	again := &rig{T: t, Groups: New(), now: r.now.Add(time.Minute), has: map[string]Assignment{}, ends: map[string]error{}}
	for _, rec := range r.out.Records() {
		r.must(again.Replay(rec, &again.out))
	}
	again.SetPartitions(again.now, 4)
	again.join("b")
	again.join("c")
	again.pass(time.Second) // a may come back
	again.owns("b: 2@1 3@1!, c:")
	again.pass(silence)
	again.owns("b: 2@1 3@1, c: 0@2 1@2") // nothing has to move any more
}

func TestCheckpoints(t *testing.T) {
	r := newRig(t, 2)
	r.want(r.checkpoint(0, 0, 1), ErrFenced)
	r.join("a")
	r.pass(joinWindow)
	r.must(r.checkpoint(0, 1, 10))
	r.want(r.checkpoint(0, 1, 9), ErrBackwards)
	r.must(r.checkpoint(0, 1, 10))
	r.want(r.checkpoint(0, 2, 11), ErrFenced)
	r.want(r.checkpoint(2, 1, 11), ErrPartition)
	r.want(r.SetCheckpoint(r.now, grp, Checkpoint{SeqNo: 99}, &r.out), ErrCoordinated)
	r.must(r.Rewind(r.now, grp, 0, 3, &r.out))
	r.owns("a: 0@2 1@1")
	if got := r.has["a"].Grants[0].Checkpoint; got != 3 {
		t.Errorf("begins after %d", got)
	}
	r.want(r.checkpoint(0, 1, 11), ErrFenced)
	r.must(r.checkpoint(0, 2, 4))
	r.must(r.Rewind(r.now, grp, 0, -1, &r.out))
	if got := r.has["a"].Grants[0].Checkpoint; got != Beginning {
		t.Errorf("begins after %d", got)
	}
}

func TestMoveAway(t *testing.T) {
	r := newRig(t, 4)
	r.want(r.MoveAway(r.now, grp, 0, time.Minute, &r.out), ErrNotOwned)
	r.join("a", "b")
	r.pass(joinWindow)
	r.must(r.MoveAway(r.now, grp, 0, time.Minute, &r.out))
	r.obey()
	r.owns("a: 1@1 2@2, b: 0@2 3@1") // it changes places with another
	r.Gone(r.now, grp, "b")
	r.pass(grace)
	r.owns("a: 1@1 2@2 3@2") // nobody else is there
	r.pass(time.Minute)
	r.owns("a: 0@3 1@1 2@2 3@2")
}

func TestReleaseWithCoolDown(t *testing.T) {
	r := newRig(t, 1)
	r.join("a", "b")
	r.pass(joinWindow)
	r.must(r.Release(r.now, grp, "a", 0, 1, time.Minute, &r.out))
	r.owns("a:, b: 0@2")
	r.must(r.Release(r.now, grp, "b", 0, 2, 30*time.Second, &r.out))
	r.owns("a:, b:")
	r.pass(30 * time.Second)
	r.owns("a:, b: 0@3")
}

func TestPause(t *testing.T) {
	r := newRig(t, 3)
	r.join("a", "b")
	r.pass(joinWindow)
	r.owns("a: 0@1 1@1, b: 2@1")
	r.must(r.Pause(r.now, grp, []int{0}, r.now.Add(time.Minute), &r.out))
	r.obey()
	r.owns("a: 1@1, b: 2@1")
	r.pass(time.Minute)
	r.owns("a: 0@2 1@1, b: 2@1")
	r.must(r.Pause(r.now, grp, []int{2}, r.now.Add(time.Hour), &r.out))
	r.must(r.Pause(r.now, grp, []int{2}, time.Time{}, &r.out)) // before it was released
	r.owns("a: 0@2 1@1, b: 2@1")
}

func TestPartitionsAdded(t *testing.T) {
	r := newRig(t, 2)
	r.join("a", "b")
	r.pass(joinWindow)
	r.SetPartitions(r.now, 5)
	r.pass(joinWindow)
	r.owns("a: 0@1 2@1 3@1, b: 1@1 4@1")
	if r.has["a"].Partitions != 5 || r.has["b"].Partitions != 5 {
		t.Error("they do not know how many there are")
	}
}

func TestClaims(t *testing.T) {
	r := newRig(t, 2)
	claim := func(owner, etag string, wins bool) Ownership {
		t.Helper()
		won, o, err := r.Claim(r.now, grp, Ownership{Partition: 1, Owner: owner, ETag: etag}, &r.out)
		if r.must(err); won != wins {
			t.Fatalf("%s with %q: won %t", owner, etag, won)
		}
		return o
	}
	claim("a", "1", false)
	first := claim("a", "", true)
	claim("b", "", false)
	second := claim("b", first.ETag, true)
	claim("a", first.ETag, false)
	if got := r.Claims(grp); len(got) != 1 || got[0] != second || second.Owner != "b" || !second.Modified.Equal(r.now) {
		t.Errorf("claims %v", got)
	}
	r.must(r.SetCheckpoint(r.now, grp, Checkpoint{Partition: 1, SeqNo: 50}, &r.out))
	r.must(r.SetCheckpoint(r.now, grp, Checkpoint{Partition: 1, SeqNo: 40}, &r.out))
	if i := r.Info(r.now, grp).Partitions[1]; i.State != Claimed || i.Owner != "b" || i.Checkpoint.SeqNo != 40 {
		t.Errorf("got %+v", i)
	}
	r.join("m")
	_, _, err := r.Claim(r.now, grp, Ownership{Partition: 1, Owner: "b", ETag: second.ETag}, &r.out)
	r.want(err, ErrCoordinated)
}

func TestForget(t *testing.T) {
	r := newRig(t, 2)
	r.join("a")
	r.pass(joinWindow)
	r.Forget(grp, &r.out)
	r.hear()
	r.want(r.ends["a"], ErrUnknownMember)
	r.want(r.checkpoint(0, 1, 5), ErrFenced)
	if len(r.Names()) != 0 {
		t.Errorf("groups %v", r.Names())
	}
}

func TestBounds(t *testing.T) {
	r := newRig(t, 1)
	for i := range maxMembers {
		r.join(fmt.Sprintf("m%04d", i))
	}
	r.want(r.Join(r.now, grp, Member{ID: "x", Run: "1"}, &r.out), ErrMembers)
	long := strings.Repeat("x", maxName+1)
	for _, m := range []Member{{ID: "", Run: "1"}, {ID: "a"}, {ID: long, Run: "1"}, {ID: "a", Run: long}, {ID: "a", Run: "1", Name: long}} {
		r.want(r.Join(r.now, "other", m, &r.out), ErrName)
	}
	r.want(r.Join(r.now, long, Member{ID: "a", Run: "1"}, &r.out), ErrName)
	for range 2 * maxChanges {
		r.must(r.Rewind(r.now, grp, 0, 1, &r.out))
	}
	for i := range 2 * maxCooling {
		r.pass(time.Second)
		p := r.find(grp).parts[0]
		if i < maxCooling*2-1 {
			r.must(r.Release(r.now, grp, p.owner, 0, p.epoch, time.Hour, &r.out))
		}
	}
}

// The busiest member exchanges one partition, once, and then it stays.
func TestLoads(t *testing.T) {
	r := newRig(t, 4)
	r.join("a", "b")
	r.pass(joinWindow)
	report := func(d time.Duration) {
		for end := r.now.Add(d); r.now.Before(end); r.pass(time.Second) {
			for _, g := range r.has["a"].Grants {
				busy := uint64(400e6)
				if g.Partition > 1 {
					busy = 10e6
				}
				_ = r.Report(r.now, grp, "a", []Progress{{Partition: g.Partition, BusyNanos: busy}})
			}
			for _, g := range r.has["b"].Grants {
				busy := uint64(400e6)
				if g.Partition > 1 {
					busy = 10e6
				}
				_ = r.Report(r.now, grp, "b", []Progress{{Partition: g.Partition, BusyNanos: busy}})
			}
			r.obey()
		}
	}
	report(5 * time.Minute)
	g := r.find(grp)
	if g.moves != 2 || g.held("a") != 2 || g.parts[0].owner == g.parts[1].owner {
		t.Errorf("%d moves, a has %d, partitions 0 and 1 are with %s and %s", g.moves, g.held("a"), g.parts[0].owner, g.parts[1].owner)
	}
}

// A repair that lost records cannot make an epoch fall.
func TestLostRecords(t *testing.T) {
	r := newRig(t, 2)
	r.join("a")
	r.pass(joinWindow)
	for range 5 {
		r.must(r.Rewind(r.now, grp, 0, 1, &r.out))
	}
	before := r.Epoch(grp, 0)
	recs := r.out.Records()
	s := New()
	for _, rec := range recs[:4] {
		r.must(s.Replay(rec, new(machine.Effects)))
	}
	s.Lost()
	s.EndReplay()
	if s.Epoch(grp, 0) <= before || s.Epoch(grp, 1) <= 1 {
		t.Errorf("epochs %d, %d", s.Epoch(grp, 0), s.Epoch(grp, 1))
	}
	again(t, s)
	other := New()
	other.Lost()
	for _, rec := range recs[3:] { // without the member
		r.must(other.Replay(rec, new(machine.Effects)))
	}
	other.EndReplay()
	if err := other.Check(); err != nil || other.Missing() == 0 {
		t.Errorf("%v, %d missing", err, other.Missing())
	}
}
