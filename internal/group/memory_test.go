// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/stream"
)

// Without memory, what would add to the state is refused before a record is written. What is
// there goes on: claims are renewed, checkpoints rise, partitions are released.
func TestWithoutMemoryNothingIsAdded(t *testing.T) {
	r := newRig(t, 4)
	r.join("a", "b")
	r.pass(joinWindow)
	_, first, err := r.Claim(r.now, "other", Ownership{Partition: 1, Owner: "x"}, &r.out)
	r.must(err)
	r.must(r.SetCheckpoint(r.now, "other", Checkpoint{Partition: 1, SeqNo: 5}, &r.out))
	r.SetSpace(0)
	records, size := r.out.Count(), r.Size()
	refused := map[string]error{
		"a new member":                   r.Join(r.now, grp, Member{ID: "c", Run: "1"}, &r.out),
		"a member of a new group":        r.Join(r.now, "new", Member{ID: "c", Run: "1"}, &r.out),
		"a checkpoint":                   r.SetCheckpoint(r.now, "other", Checkpoint{Partition: 2}, &r.out),
		"a checkpoint of a new group":    r.SetCheckpoint(r.now, "new", Checkpoint{Partition: 2}, &r.out),
		"a rewind":                       r.Rewind(r.now, "other", 2, 7, &r.out),
		"a rewind of all":                r.RewindAll(r.now, "other", []int{0, 1}, []stream.SeqNo{1, 2}, &r.out),
		"a pause":                        r.Pause(r.now, grp, []int{1}, r.now.Add(time.Minute), &r.out),
		"a pause of all":                 r.Pause(r.now, "new", nil, r.now.Add(time.Minute), &r.out),
		"a partition that is to be left": r.MoveAway(r.now, grp, 0, 0, &r.out),
	}
	_, _, refused["a claim"] = r.Claim(r.now, "other", Ownership{Partition: 2, Owner: "x"}, &r.out)
	_, _, refused["a longer name"] = r.Claim(r.now, "other", Ownership{Partition: 1, Owner: strings.Repeat("x", 65), ETag: first.ETag}, &r.out)
	for what, err := range refused {
		if err != ErrMemory {
			t.Errorf("%s: %v, want %v", what, err, ErrMemory)
		}
	}
	if r.out.Count() != records || r.Size() != size || len(r.Names()) != 2 {
		t.Fatalf("%d records were written, the size changed by %d, groups %v", r.out.Count()-records, r.Size()-size, r.Names())
	}
	for _, owner := range []string{"", "another-" + strings.Repeat("y", 36)} { // given up, and claimed by another
		won, next, err := r.Claim(r.now, "other", Ownership{Partition: 1, Owner: owner, ETag: first.ETag}, &r.out)
		if r.must(err); !won {
			t.Fatalf("%q has not won", owner)
		}
		first = next
	}
	r.must(r.SetCheckpoint(r.now, "other", Checkpoint{Partition: 1, SeqNo: 9}, &r.out))
	r.must(r.checkpoint(0, 1, 3))
	r.join("a") // which is there
	r.must(r.Pause(r.now, grp, nil, time.Time{}, &r.out))
	r.must(r.Release(r.now, grp, "a", 0, 1, time.Minute, &r.out)) // and gets it again
	r.must(r.Leave(r.now, grp, "b", &r.out))
	r.pass(joinWindow)
	r.obey()
	r.Forget(grp, &r.out)
	r.Forget("other", &r.out)
	r.hear()
	if r.Size() != 0 {
		t.Errorf("%d bytes are counted for no groups", r.Size())
	}
}

// A rewind of several partitions is done for all of them or for none, also if the history of
// the group takes the memory that the last of them need.
func TestARewindIsNotHalfDone(t *testing.T) {
	r := newRig(t, 2)
	r.join("a")
	r.pass(joinWindow)
	r.SetPartitions(r.now, 4)
	r.SetSpace(2 * (slotCost + partCost)) // of those that are new
	records := r.out.Count()
	err := r.RewindAll(r.now, grp, []int{0, 1, 2, 3}, []stream.SeqNo{1, 1, 1, 1}, &r.out)
	if n := r.out.Count() - records; err == nil && n != 8 || err != nil && n != 0 {
		t.Errorf("%v, after %d records", err, n)
	}
}

// A claim that loses, and a checkpoint that is fenced, make no group and no partition.
func TestWhatIsRefusedLeavesNothing(t *testing.T) {
	r := newRig(t, 1024)
	for i := range 100 {
		name := fmt.Sprint("group", i)
		if won, _, err := r.Claim(r.now, name, Ownership{Partition: 1023, Owner: "x", ETag: "7"}, &r.out); won || err != nil {
			t.Fatal(won, err)
		}
		r.want(r.Checkpoint(r.now, name, Checkpoint{Partition: 5, Epoch: 1, SeqNo: 1}, &r.out), ErrFenced)
		r.want(r.MoveAway(r.now, name, 5, time.Minute, &r.out), ErrNotOwned)
		r.must(r.Pause(r.now, name, nil, time.Time{}, &r.out))
	}
	if r.Size() != 0 {
		t.Errorf("%d bytes for groups %v", r.Size(), r.Names())
	}
}

// heap returns how much memory is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The size that is charged is what the heap grows by, about, also after a restart, whatever
// kind of state clients make. A partition of which nobody has made anything takes a few bytes.
func TestSizeIsWhatTheHeapGrowsBy(t *testing.T) {
	const partitions = 1024
	long := strings.Repeat("n", 200)
	for _, c := range []struct {
		what string
		most int64 // bytes for each group
		make func(r *rig, group string, i int)
	}{
		{"claims of one process", 250 << 10, func(r *rig, group string, _ int) {
			for n := range partitions {
				_, _, err := r.Claim(r.now, group, Ownership{Partition: n, Owner: "one"}, &r.out)
				r.must(err)
			}
		}},
		{"claims with long names", 400 << 10, func(r *rig, group string, i int) {
			for n := range partitions {
				_, _, err := r.Claim(r.now, group, Ownership{Partition: n, Owner: fmt.Sprint(long, i, " ", n)}, &r.out)
				r.must(err)
			}
		}},
		{"one checkpoint", 20 << 10, func(r *rig, group string, _ int) {
			r.must(r.SetCheckpoint(r.now, group, Checkpoint{Partition: partitions - 1, SeqNo: 1}, &r.out))
		}},
		{"checkpoints", 150 << 10, func(r *rig, group string, _ int) {
			for n := range partitions {
				r.must(r.SetCheckpoint(r.now, group, Checkpoint{Partition: n, SeqNo: 1}, &r.out))
			}
		}},
		{"pauses", 200 << 10, func(r *rig, group string, _ int) {
			r.must(r.Pause(r.now, group, nil, r.now.Add(time.Hour), &r.out))
		}},
		{"a member", 400 << 10, func(r *rig, group string, i int) {
			r.must(r.Join(r.now, group, Member{ID: fmt.Sprint(long, i), Run: long, Name: long}, &r.out))
			r.Tick(r.now.Add(joinWindow), &r.out)
		}},
		{"members", 1 << 20, func(r *rig, group string, i int) {
			for n := range 200 {
				r.must(r.Join(r.now, group, Member{ID: fmt.Sprint(strings.Clone(long), i, n), Run: strings.Clone(long)}, &r.out))
			}
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := newRig(t, partitions)
			const groups = 8
			for i := range groups {
				c.make(r, fmt.Sprint("group", i), i)
				r.News()
			}
			records := r.out.Records()
			before := heap()
			s := New()
			for _, rec := range records {
				if err := s.Replay(rec, new(machine.Effects)); err != nil {
					t.Fatal(err)
				}
			}
			grown := heap() - before
			t.Logf("%d bytes for each group, %d counted, %d in use", grown/groups, s.Size()/groups, r.Size()/groups)
			if s.Size() < grown-grown/10-groups<<10 || s.Size() > 4*grown+groups<<10 {
				t.Errorf("%d are counted, and the heap has grown by %d", s.Size(), grown)
			}
			if s.Size() > r.Size() || r.Size() > groups*c.most {
				t.Errorf("%d are counted after a restart, %d before, at most %d are expected", s.Size(), r.Size(), groups*c.most)
			}
			runtime.KeepAlive(s)
			runtime.KeepAlive(records)
		})
	}
}

// A pause of all partitions is one step for all members, and so is taking what was not
// released in time: each hears of it once.
func TestAPauseOfAllIsOneStep(t *testing.T) {
	const n = maxMembers
	r := newRig(t, n)
	for i := range n {
		r.must(r.Join(r.now, grp, Member{ID: fmt.Sprintf("m%04d", i), Run: "1"}, &r.out))
	}
	r.pass(joinWindow)
	if err := r.Pause(r.now, grp, nil, r.now.Add(time.Hour), &r.out); err != nil {
		t.Fatal(err)
	}
	if news := r.News(); len(news) != n || len(news[0].Assignment.Grants) != 1 || news[0].Assignment.Grants[0].RevokeBy.IsZero() {
		t.Fatalf("%d members hear of it", len(news))
	}
	r.now = r.now.Add(revokeFor) // nobody has released anything
	before := time.Now()
	r.takeOverdue(r.now, r.find(grp), &r.out)
	if took := time.Since(before); took > time.Second {
		t.Errorf("taking %d partitions takes %v", n, took)
	}
	if news := r.News(); len(news) != n || len(news[0].Assignment.Grants) != 0 {
		t.Errorf("%d members hear that it is taken", len(news))
	}
}

// What is reserved on the disk for a snapshot is enough for it, also after a restart, when
// nobody has come back yet, and with names as long as they may be.
func TestSnapshotIsNotLargerThanItSays(t *testing.T) {
	long := strings.Repeat("n", maxName)
	for _, group := range []string{grp, strings.Repeat("g", 50), strings.Repeat("g", maxName)} {
		r := newRig(t, 200)
		r.must(r.Join(r.now, group, Member{ID: long, Run: long, Name: long}, &r.out))
		r.Tick(r.now.Add(joinWindow), &r.out)
		for n := range 200 {
			r.must(r.Checkpoint(r.now, group, Checkpoint{Partition: n, Epoch: 1, SeqNo: 1 << 40}, &r.out))
		}
		s := New()
		for _, rec := range r.out.Records() {
			if err := s.Replay(rec, new(machine.Effects)); err != nil {
				t.Fatal(err)
			}
		}
		for what, s := range map[string]*Groups{"before": r.Groups, "after": s} {
			var out machine.Effects
			for snap := s.Snapshot(); !snap.Step(&machine.Budget{Items: 1000, Bytes: 1 << 20}, nil, &out); {
			}
			if said := s.SnapshotSize(); uint64(out.Size()) > said {
				t.Errorf("%s a restart: %d bytes, said %d; the group has a name of %d", what, out.Size(), said, len(group))
			}
		}
	}
}
