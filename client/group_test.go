// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

// processed is what the tests of groups work on.
const processed = `
hubs:
  - {name: clicks, partitionCount: 4, consumerGroups: [{name: dashboard}]}
`

func join(t *testing.T, c *client.Client, o client.MemberOptions) *client.Member {
	t.Helper()
	m, err := c.Group("clicks", "dashboard").Join(deadline(t), o)
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// until waits for an assignment of a member that is as wanted.
func until(t *testing.T, m *client.Member, what string, want func(client.Assignment) bool) client.Assignment {
	t.Helper()
	var a client.Assignment
	for ctx := deadline(t); ; {
		var err error
		last := a
		if a, err = m.Next(ctx); err != nil {
			t.Fatalf("%s: %v; the last was %+v", what, err, last)
		}
		if want(a) {
			return a
		}
	}
}

// has reports whether an assignment is of n partitions, none of which is revoked.
func has(n int) func(client.Assignment) bool {
	return func(a client.Assignment) bool {
		return len(a.Grants) == n && !slices.ContainsFunc(a.Grants, func(g client.Grant) bool { return !g.RevokeBy.IsZero() })
	}
}

func epochs(a client.Assignment) map[string]int64 {
	es := map[string]int64{}
	for _, g := range a.Grants {
		es[g.Partition] = g.Epoch
	}
	return es
}

func checkpoint(t *testing.T, g *client.Group, cs ...client.Checkpoint) []error {
	t.Helper()
	each, err := g.Checkpoint(deadline(t), cs)
	must(t, err)
	return each
}

func TestMembersShareAHub(t *testing.T) {
	b := triagetest.Start(t, processed)
	c := b.Client()
	group := c.Group("clicks", "dashboard")
	first := join(t, c, client.MemberOptions{ID: "first", Name: "one"})
	all := until(t, first, "alone", has(4))
	if all.Partitions != 4 || all.Grants[0].Checkpoint != client.NoCheckpoint || all.Grants[0].Epoch != 1 || first.ID() != "first" {
		t.Errorf("assignment %+v", all)
	}
	publish(t, c, "clicks/Partitions/3", eventBodies("a", "b", "c")...)
	publish(t, c, "clicks/Partitions/0", eventBodies("a")...)
	for _, err := range checkpoint(t, group, client.Checkpoint{Partition: "3", Epoch: 1, SeqNo: 1}, client.Checkpoint{Partition: "0", Epoch: 1, SeqNo: 0}) {
		must(t, err)
	}
	must(t, first.Report(deadline(t), []client.PartitionReport{{Partition: "3", Epoch: 1, Handled: 1, Skipped: 4, Busy: time.Second, Bytes: 100}}))
	must(t, first.Report(deadline(t), nil))

	// A second member gets two of them, after the first has released them.
	second := join(t, b.Client(), client.MemberOptions{ID: "second"})
	revoking := until(t, first, "to share", func(a client.Assignment) bool { return len(a.Grants) == 4 && !has(4)(a) })
	released := 0
	for _, g := range revoking.Grants {
		if left := time.Until(g.RevokeBy); !g.RevokeBy.IsZero() {
			released++
			if left < time.Second || left > time.Minute {
				t.Errorf("partition %s is revoked in %v", g.Partition, left)
			}
			must(t, first.Release(deadline(t), g.Partition, g.Epoch, 0))
		}
	}
	until(t, first, "with two", has(2))
	got := until(t, second, "the other two", has(2))
	if released != 2 || got.Grants[0].Epoch != 2 {
		t.Errorf("%d partitions were revoked; the second has %+v", released, got)
	}

	// One that leaves is told to release, and ends when it has.
	must(t, first.Leave(deadline(t)))
	last := until(t, first, "to leave", func(a client.Assignment) bool {
		return len(a.Grants) == 2 && !slices.ContainsFunc(a.Grants, func(g client.Grant) bool { return g.RevokeBy.IsZero() })
	})
	for _, g := range last.Grants {
		must(t, first.Release(deadline(t), g.Partition, g.Epoch, 0))
	}
	for {
		if _, err := first.Next(deadline(t)); err != nil {
			wantError(t, "a member that has left", err, client.ErrClosed)
			break
		}
	}
	four := until(t, second, "all", has(4))
	for _, g := range four.Grants {
		want := map[string]client.SeqNo{"0": 0, "3": 1}
		n, ok := want[g.Partition]
		if !ok {
			n = client.NoCheckpoint
		}
		if g.Checkpoint != n {
			t.Errorf("the checkpoint of partition %s is %d, want %d", g.Partition, g.Checkpoint, n)
		}
	}
	must(t, first.Leave(deadline(t))) // it has left already
}

func TestOnlyTheOwnerMovesACheckpoint(t *testing.T) {
	c := triagetest.Start(t, processed).Client()
	group := c.Group("clicks", "dashboard")
	m := join(t, c, client.MemberOptions{})
	publish(t, c, "clicks/Partitions/2", eventBodies("a", "b", "c")...)
	until(t, m, "all", has(4))
	each := checkpoint(t, group,
		client.Checkpoint{Partition: "2", Epoch: 1, SeqNo: 2},
		client.Checkpoint{Partition: "2", Epoch: 1, SeqNo: 1},
		client.Checkpoint{Partition: "2", Epoch: 1, SeqNo: 2},
		client.Checkpoint{Partition: "2", Epoch: 7, SeqNo: 2},
		client.Checkpoint{Partition: "1", Epoch: 1, SeqNo: 0}, // there is no such event
	)
	for i, want := range []error{nil, client.ErrBackwards, nil, client.ErrFenced, client.ErrInvalid} {
		wantError(t, fmt.Sprint("entry ", i), each[i], want)
	}
	found, err := group.Checkpoints(deadline(t))
	must(t, err)
	if len(found) != 1 || found[0].Partition != "2" || found[0].SeqNo != 2 || found[0].Epoch != 1 || time.Since(found[0].At).Abs() > time.Minute {
		t.Errorf("checkpoints %+v", found)
	}
	// What was released belongs to nobody, until it is granted anew with a higher epoch.
	must(t, m.Release(deadline(t), "2", 1, 0))
	wantError(t, "released twice", m.Release(deadline(t), "2", 1, 0), client.ErrFenced)
	again := until(t, m, "granted again", func(a client.Assignment) bool { return epochs(a)["2"] > 1 })
	wantError(t, "the old epoch", checkpoint(t, group, client.Checkpoint{Partition: "2", Epoch: 1, SeqNo: 2})[0], client.ErrFenced)
	must(t, checkpoint(t, group, client.Checkpoint{Partition: "2", Epoch: epochs(again)["2"], SeqNo: 2})[0])
}

func TestMemberComesBackAfterAnOutage(t *testing.T) {
	b := triagetest.Start(t, processed)
	c, w := wired(t, b)
	m := join(t, c, client.MemberOptions{ID: "m", Keep: 20 * time.Second})
	before := epochs(until(t, m, "all", has(4)))
	for range 3 {
		w.cut()
		if after := epochs(until(t, m, "after the outage", has(4))); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("epochs %v, want %v", after, before)
		}
		must(t, m.Report(deadline(t), nil))
	}
}

func TestPartitionsMoveWhenAConnectionIsLost(t *testing.T) {
	b := triagetest.Start(t, processed)
	c, w := wired(t, b)
	m := join(t, c, client.MemberOptions{ID: "lost"})
	until(t, m, "all", has(4))
	other := join(t, b.Client(), client.MemberOptions{ID: "other"})
	w.refuse()
	w.cut()
	start := time.Now()
	until(t, other, "all", has(4))
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("they moved after %v", took)
	}
	w.admit()
	until(t, m, "none, or to share", func(client.Assignment) bool { return true })
}

func TestAnotherRunTakesTheMembersPlace(t *testing.T) {
	b := triagetest.Start(t, processed)
	group := b.Client().Group("clicks", "dashboard")
	old := join(t, b.Client(), client.MemberOptions{ID: "m", Run: "1"})
	before := until(t, old, "all", has(4))
	publish(t, b.Client(), "clicks/Partitions/0", eventBodies("a")...)
	next := join(t, b.Client(), client.MemberOptions{ID: "m", Run: "2"})
	after := until(t, next, "all", has(4))
	for p, e := range epochs(after) {
		if e <= epochs(before)[p] {
			t.Errorf("partition %s has the epoch %d after %d", p, e, epochs(before)[p])
		}
	}
	for range 2 { // it does not fight for its place
		for {
			if _, err := old.Next(deadline(t)); err != nil {
				wantError(t, "the old run", err, client.ErrTaken)
				break
			}
		}
	}
	wantError(t, "a report of the old run", old.Report(deadline(t), nil), client.ErrUnknownMember)
	wantError(t, "its checkpoint", checkpoint(t, group, client.Checkpoint{Partition: "0", Epoch: epochs(before)["0"], SeqNo: 0})[0], client.ErrFenced)
	must(t, next.Report(deadline(t), nil))
}

func TestRewindAndPause(t *testing.T) {
	c := triagetest.Start(t, processed).Client()
	ctx := deadline(t)
	group := c.Group("clicks", "dashboard")
	publish(t, c, "clicks/Partitions/1", eventBodies("a", "b", "c", "d")...)
	m := join(t, c, client.MemberOptions{})
	until(t, m, "all", has(4))
	must(t, checkpoint(t, group, client.Checkpoint{Partition: "1", Epoch: 1, SeqNo: 3})[0])
	epoch := int64(1)
	for what, tt := range map[string]struct {
		to   client.Position
		want client.SeqNo
	}{
		"behind a number": {client.Position{After: after(1)}, 1},
		"oldest":          {client.Position{}, client.BeforeFirst},
		"next":            {client.Position{Latest: true}, 3},
		"a time":          {client.Position{Since: time.Now().Add(-time.Hour)}, client.BeforeFirst},
	} {
		must(t, group.Rewind(ctx, "1", tt.to))
		a := until(t, m, what, func(a client.Assignment) bool { return epochs(a)["1"] > epoch && len(a.Grants) == 4 })
		epoch = epochs(a)["1"]
		i := slices.IndexFunc(a.Grants, func(g client.Grant) bool { return g.Partition == "1" })
		if got := a.Grants[i].Checkpoint; got != tt.want {
			t.Errorf("%s: the checkpoint is %d, want %d", what, got, tt.want)
		}
	}
	wantError(t, "the epoch before", checkpoint(t, group, client.Checkpoint{Partition: "1", Epoch: epoch - 1, SeqNo: 3})[0], client.ErrFenced)
	must(t, group.Rewind(ctx, "", client.Position{}))
	until(t, m, "all rewound", func(a client.Assignment) bool {
		return len(a.Grants) == 4 && !slices.ContainsFunc(a.Grants, func(g client.Grant) bool { return g.Checkpoint != client.BeforeFirst })
	})
	wantError(t, "two positions", group.Rewind(ctx, "1", client.Position{After: after(1), Latest: true}), client.ErrInvalid)

	must(t, group.Pause(ctx, "2", time.Now().Add(time.Hour)))
	a := until(t, m, "told", func(a client.Assignment) bool { return len(a.Grants) == 3 || !has(4)(a) })
	for _, g := range a.Grants {
		if !g.RevokeBy.IsZero() {
			must(t, m.Release(ctx, g.Partition, g.Epoch, 0))
		}
	}
	until(t, m, "three", has(3))
	must(t, group.Pause(ctx, "2", time.Time{}))
	until(t, m, "four again", has(4))
}

func TestClaimsOfProgramsThatBalanceThemselves(t *testing.T) {
	c := triagetest.Start(t, processed).Client()
	ctx := deadline(t)
	group := c.Group("clicks", "dashboard")
	publish(t, c, "clicks/Partitions/1", eventBodies("a", "b", "c")...)
	claim := func(cs ...client.Ownership) []client.Ownership {
		t.Helper()
		won, err := group.Claim(ctx, cs)
		must(t, err)
		return won
	}
	if os, err := group.Ownership(ctx); err != nil || len(os) != 0 {
		t.Fatalf("%+v, %v before the first claim", os, err)
	}
	won := claim(client.Ownership{Partition: "0", Owner: "a"}, client.Ownership{Partition: "1", Owner: "a"})
	if len(won) != 2 || won[0].Owner != "a" || won[0].ETag == "" || won[0].Modified.IsZero() {
		t.Fatalf("won %+v", won)
	}
	if lost := claim(client.Ownership{Partition: "0", Owner: "b"}, client.Ownership{Partition: "1", Owner: "b", ETag: "old"}); len(lost) != 0 {
		t.Errorf("won %+v without the ETag", lost)
	}
	taken := claim(client.Ownership{Partition: "0", Owner: "b", ETag: won[0].ETag})
	if len(taken) != 1 || taken[0].ETag == won[0].ETag {
		t.Errorf("won %+v", taken)
	}
	os, err := group.Ownership(ctx)
	must(t, err)
	if len(os) != 2 || os[0].Partition != "0" || os[0].Owner != "b" || os[0].ETag != taken[0].ETag || os[1].Owner != "a" {
		t.Errorf("owners %+v", os)
	}
	must(t, group.SetCheckpoint(ctx, client.Checkpoint{Partition: "1", SeqNo: 2}))
	must(t, group.SetCheckpoint(ctx, client.Checkpoint{Partition: "1", SeqNo: 1}))
	cs, err := group.Checkpoints(ctx)
	if err != nil || len(cs) != 1 || cs[0].SeqNo != 1 {
		t.Errorf("checkpoints %+v, %v", cs, err)
	}
	if os, err := c.Group("clicks", "").Ownership(ctx); err != nil || len(os) != 0 {
		t.Errorf("another group has %+v, %v", os, err)
	}
	join(t, c, client.MemberOptions{})
	_, err = group.Claim(ctx, []client.Ownership{{Partition: "2", Owner: "c"}})
	wantError(t, "a claim beside members", err, client.ErrCoordinated)
}

func TestRequestsAboutGroupsThatCannotBe(t *testing.T) {
	c := triagetest.Start(t, processed).Client()
	ctx := deadline(t)
	group := c.Group("clicks", "dashboard")
	_, err := c.Group("clicks", "none").Join(ctx, client.MemberOptions{})
	wantError(t, "join no group", err, client.ErrNotFound)
	_, err = c.Group("none", "").Checkpoints(ctx)
	wantError(t, "no hub", err, client.ErrNotFound)
	for _, name := range []string{"", "01", "-1", "x", "99999999999"} {
		_, err := group.Checkpoint(ctx, []client.Checkpoint{{Partition: name}})
		wantError(t, "partition "+name, err, client.ErrInvalid)
	}
	_, err = group.Checkpoint(ctx, []client.Checkpoint{{Partition: "4"}})
	wantError(t, "partition 4", err, client.ErrInvalid)
	wantError(t, "partition 4", group.Rewind(ctx, "4", client.Position{}), client.ErrInvalid)
	if each, err := group.Checkpoint(ctx, nil); err != nil || len(each) != 0 {
		t.Errorf("no checkpoints: %v, %v", each, err)
	}
	m := join(t, c, client.MemberOptions{})
	must(t, m.Close())
	_, err = m.Next(ctx)
	wantError(t, "a closed member", err, client.ErrClosed)
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	other := join(t, c, client.MemberOptions{})
	for err = nil; err == nil; _, err = other.Next(short) {
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wait that is over: %v", err)
	}
}

// A broker that is killed has lost nothing: the same runs keep what they had.
func TestMembersAfterTheBrokerIsKilled(t *testing.T) {
	b := triagetest.Start(t, processed)
	c := b.Client()
	group := c.Group("clicks", "dashboard")
	m := join(t, c, client.MemberOptions{ID: "m"})
	before := epochs(until(t, m, "all", has(4)))
	publish(t, c, "clicks/Partitions/1", eventBodies("a", "b")...)
	must(t, checkpoint(t, group, client.Checkpoint{Partition: "1", Epoch: before["1"], SeqNo: 0})[0])
	b.Crash()
	after := until(t, m, "all", has(4))
	if fmt.Sprint(epochs(after)) != fmt.Sprint(before) {
		t.Errorf("epochs %v, want %v", epochs(after), before)
	}
	if i := slices.IndexFunc(after.Grants, func(g client.Grant) bool { return g.Partition == "1" }); after.Grants[i].Checkpoint != 0 {
		t.Errorf("the checkpoint is %d, want 0", after.Grants[i].Checkpoint)
	}
	must(t, checkpoint(t, group, client.Checkpoint{Partition: "1", Epoch: before["1"], SeqNo: 1})[0])
}

// A broker that knows no members of groups says so, or takes one for a reader.
func TestGroupsAtAnotherBroker(t *testing.T) {
	b := triagetest.Start(t, processed)
	for _, word := range []string{"triagemq:member", "triagemq:group"} {
		var w wire
		c, err := client.Dial(deadline(t), b.ConnectionString(), &client.Options{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := w.dial(ctx, network, address)
				return deaf{conn, word}, err
			},
		})
		must(t, err)
		defer c.Close()
		if group := c.Group("clicks", "dashboard"); word == "triagemq:member" {
			_, err = group.Join(deadline(t), client.MemberOptions{})
		} else {
			_, err = group.Checkpoints(deadline(t))
		}
		wantError(t, word, err, errors.ErrUnsupported)
	}
}

// An old run whose connection was lost when its successor joined has not heard of it. When it
// is back, also after a restart of the broker, it does not take the place of the younger one.
func TestAnOldRunThatComesBackIsRefused(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restarts), func(t *testing.T) {
			b := triagetest.Start(t, processed)
			c, w := wired(t, b)
			old := join(t, c, client.MemberOptions{ID: "m", Run: "1"})
			until(t, old, "all", has(4))
			w.refuse()
			w.cut()
			next := join(t, b.Client(), client.MemberOptions{ID: "m", Run: "2"})
			mine := until(t, next, "all", has(4))
			if restarts {
				b.Crash()
				mine = until(t, next, "all", has(4))
			}
			w.admit()
			for {
				if _, err := old.Next(deadline(t)); err != nil {
					wantError(t, "the old run", err, client.ErrTaken)
					break
				}
			}
			must(t, next.Report(deadline(t), nil))
			publish(t, b.Client(), "clicks/Partitions/0", eventBodies("a")...)
			group := b.Client().Group("clicks", "dashboard")
			must(t, checkpoint(t, group, client.Checkpoint{Partition: "0", Epoch: epochs(mine)["0"], SeqNo: 0})[0])
		})
	}
}
