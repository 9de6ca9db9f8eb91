// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"testing"
	"time"
)

// crowd has n members of a key join that want to be kept for an hour.
func (r *rig) crowd(key string, n int) {
	r.Helper()
	for i := range n {
		r.must(r.Join(r.now, grp, Member{ID: fmt.Sprintf("%s %04d", key, i), Run: "1", Keep: time.Hour, Key: key}, &r.out))
	}
}

func (r *rig) gone(key string, from, to int) {
	for i := from; i < to; i++ {
		r.Gone(r.now, grp, fmt.Sprintf("%s %04d", key, i))
	}
}

func (r *rig) count(key string) (n int) {
	for _, m := range r.find(grp).members {
		if m.Key == key {
			n++
		}
	}
	return n
}

// One key cannot have all places of a group, and those that are away take none from others.
func TestMembersOfAKey(t *testing.T) {
	r := newRig(t, 4)
	r.crowd("evil", maxOfKey)
	r.want(r.Join(r.now, grp, Member{ID: "one more", Run: "1", Key: "evil"}, &r.out), ErrMembers)
	r.crowd("good", maxMembers-maxOfKey)
	r.want(r.Join(r.now, grp, Member{ID: "one more", Run: "1", Key: "good"}, &r.out), ErrMembers)
	if n := r.count("evil"); n != maxOfKey {
		t.Errorf("%d members are there that are connected, of %d", n, maxOfKey)
	}

	// Those that are away give way: first of the key that has the most, and of these who was
	// heard first.
	r.gone("good", 0, 10)
	r.now = r.now.Add(time.Second)
	r.must(r.Report(r.now, grp, "evil 0000", nil))
	r.gone("evil", 0, 3)
	for i := range 3 {
		r.must(r.Join(r.now, grp, Member{ID: fmt.Sprint("new ", i), Run: "1", Key: "third"}, &r.out))
		if n := r.count("evil"); n != maxOfKey-i-1 {
			t.Errorf("after %d of another key %d are left, want %d", i+1, n, maxOfKey-i-1)
		}
		if there := r.Groups.member(grp, "evil 0000") != nil; there != (i < 2) {
			t.Errorf("after %d the one that was heard last is there: %t", i+1, there)
		}
	}
	r.must(r.Join(r.now, grp, Member{ID: "new 3", Run: "1", Key: "third"}, &r.out))
	if n := r.count("good"); n != maxMembers-maxOfKey-1 {
		t.Errorf("%d of the other key, of which some are away", n)
	}
	r.must(r.Join(r.now, grp, Member{ID: "good 0009", Run: "1", Key: "good"}, &r.out)) // its place is its own
	if err := r.Check(); err != nil {
		t.Error(err)
	}
}

// For a key that has all that it may have, one of its own gives way.
func TestOneOfTheSameKeyGivesWay(t *testing.T) {
	r := newRig(t, 4)
	r.crowd("fleet", maxOfKey)
	r.crowd("other", 10)
	r.gone("other", 0, 10)
	r.want(r.Join(r.now, grp, Member{ID: "x", Run: "1", Key: "fleet"}, &r.out), ErrMembers)
	r.gone("fleet", 5, 6)
	r.must(r.Join(r.now, grp, Member{ID: "x", Run: "1", Key: "fleet"}, &r.out))
	if r.Groups.member(grp, "fleet 0005") != nil || r.count("other") != 10 {
		t.Error("another gave way than the one that is away of its key")
	}
}

// Keep ends with the right: at a time that is known, or at once.
func TestKeepEndsWithTheRight(t *testing.T) {
	r := newRig(t, 2)
	keep := func(id string) {
		r.must(r.Join(r.now, grp, Member{ID: id, Run: "1", Keep: time.Hour, Key: "k"}, &r.out))
	}
	keep("a")
	keep("b")
	keep("c")
	r.pass(joinWindow)
	for _, id := range []string{"a", "b"} {
		r.Gone(r.now, grp, id)
	}
	r.KeepUntil(r.now, grp, "a", r.now.Add(time.Minute))
	r.KeepUntil(r.now, grp, "b", r.now.Add(2*time.Hour)) // it is kept for less
	r.KeepUntil(r.now, grp, "c", r.now)                  // it is connected
	r.pass(time.Minute - time.Millisecond)
	if r.Groups.member(grp, "a") == nil {
		t.Error("it is given up before its right ends")
	}
	r.pass(time.Millisecond)
	if r.Groups.member(grp, "a") != nil || r.Groups.member(grp, "b") == nil || r.Groups.member(grp, "c") == nil {
		t.Error("when the right of one has ended others are gone, or it is there")
	}
	r.Expel(r.now, grp, "b", "2", &r.out)
	if r.Groups.member(grp, "b") == nil {
		t.Error("the one before it has lost its right, and it is gone")
	}
	r.Expel(r.now, grp, "b", "1", &r.out)
	r.Expel(r.now, grp, "nobody", "1", &r.out)
	r.pass(joinWindow)
	r.owns("c: 0@2 1@2")
}

// After a restart nobody knows by whose right members had joined: they are kept for a short
// time.
func TestKeepAfterARestart(t *testing.T) {
	r := newRig(t, 2)
	r.must(r.Join(r.now, grp, Member{ID: "a", Run: "1", Keep: time.Hour, Key: "k"}, &r.out))
	r.pass(joinWindow)
	r.restart(2)
	r.pass(keepUnknown - time.Millisecond)
	if r.Groups.member(grp, "a") == nil {
		t.Error("it is not kept")
	}
	r.pass(time.Millisecond)
	if r.Groups.member(grp, "a") != nil {
		t.Errorf("it is kept for longer than %v", keepUnknown)
	}
}

// An operator takes the partitions of a member that is away at once.
func TestMoveAwayFromAMemberThatIsAway(t *testing.T) {
	r := newRig(t, 2)
	r.must(r.Join(r.now, grp, Member{ID: "a", Run: "1", Keep: time.Hour}, &r.out))
	r.join("b")
	r.pass(joinWindow)
	r.owns("a: 0@1, b: 1@1")
	r.Gone(r.now, grp, "a")
	r.must(r.MoveAway(r.now, grp, 0, 0, &r.out))
	r.owns("a: 0@1, b: 0@2 1@1") // a has not heard
	if owner, _ := r.Owner(grp, 0); owner != "b" {
		t.Errorf("partition 0 is of %q", owner)
	}
}
