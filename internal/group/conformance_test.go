// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/machine/machinetest"
	"github.com/triagemq/triagemq/internal/stream"
)

var start = time.UnixMilli(1_700_000_000_000)

// describe is everything that a restart must find again.
func describe(s *Groups) string {
	var b strings.Builder
	fmt.Fprintf(&b, "last %d, floor %d", s.last, s.floor)
	for _, g := range s.list {
		for _, m := range g.members {
			fmt.Fprintf(&b, "\n%s: member {ID:%s Run:%s Name:%s Keep:%v} since %d leaving %t", g.name, m.ID, m.Run, m.Name, m.Keep, m.since, m.leaving)
		}
		for n, p := range g.used() {
			if p.epoch > 0 {
				fmt.Fprintf(&b, "\n%s: partition %d epoch %d of %q since %d", g.name, n, p.epoch, p.owner, p.since)
			}
			if p.done() {
				fmt.Fprintf(&b, "\n%s: partition %d done %d at %d", g.name, n, p.seq, p.doneAt)
			}
			if p.paused() > 0 || len(p.cooling()) > 0 {
				fmt.Fprintf(&b, "\n%s: partition %d paused %d", g.name, n, p.paused())
				for _, c := range p.cooling() {
					fmt.Fprintf(&b, ", %s cools until %d", c.member, c.until)
				}
			}
			if p.claim != nil {
				fmt.Fprintf(&b, "\n%s: partition %d claimed %+v", g.name, n, *p.claim)
			}
		}
	}
	return b.String()
}

// randomly runs one random command. Most are such that they can be done.
func randomly(s *Groups, rnd *rand.Rand, now time.Time, out *machine.Effects) {
	name := []string{"a", "b", "c"}[rnd.IntN(3)]
	id := fmt.Sprintf("m%d", rnd.IntN(5))
	n := rnd.IntN(s.partitions)
	epoch := s.Epoch(name, n)
	if rnd.IntN(10) == 0 {
		epoch--
	}
	switch rnd.IntN(16) {
	case 0, 1, 2:
		_ = s.Join(now, name, Member{ID: id, Run: fmt.Sprint("run", rnd.IntN(2)), Name: "host", Keep: time.Duration(rnd.IntN(3)) * time.Second, Key: fmt.Sprint("key", rnd.IntN(2))}, out)
	case 3:
		if s.Gone(now, name, id); rnd.IntN(3) == 0 {
			s.KeepUntil(now, name, id, now.Add(time.Duration(rnd.IntN(1000)-100)*time.Millisecond))
		} else if rnd.IntN(3) == 0 {
			s.Expel(now, name, id, fmt.Sprint("run", rnd.IntN(2)), out)
		}
	case 4:
		_ = s.Leave(now, name, id, out)
	case 5:
		_ = s.Report(now, name, id, []Progress{{Partition: n, Handled: stream.SeqNo(rnd.IntN(100)), BusyNanos: uint64(rnd.IntN(1e9))}})
	case 6, 7:
		if owner, _ := s.Owner(name, n); owner != "" {
			id = owner
		}
		_ = s.Release(now, name, id, n, epoch, time.Duration(rnd.IntN(2000))*time.Millisecond, out)
	case 8, 9:
		_ = s.Checkpoint(now, name, Checkpoint{Partition: n, Epoch: epoch, SeqNo: stream.SeqNo(rnd.IntN(1000))}, out)
	case 10:
		_ = s.Rewind(now, name, n, stream.SeqNo(rnd.IntN(100)-1), out)
	case 11:
		_ = s.MoveAway(now, name, n, time.Duration(rnd.IntN(5))*time.Second, out)
	case 12:
		_ = s.Pause(now, name, []int{n}, now.Add(time.Duration(rnd.IntN(10)-3)*time.Second), out)
	case 13:
		etag := ""
		for _, o := range s.Claims(name) {
			if o.Partition == n {
				etag = o.ETag
			}
		}
		_, _, _ = s.Claim(now, name, Ownership{Partition: n, Owner: id, ETag: etag}, out)
	case 14:
		if rnd.IntN(5) == 0 {
			s.Forget(name, out)
		} else {
			_ = s.SetCheckpoint(now, name, Checkpoint{Partition: n, SeqNo: stream.SeqNo(rnd.IntN(1000))}, out)
		}
	default:
		s.SetPartitions(now, s.partitions+rnd.IntN(2))
	}
	s.Tick(now, out)
	s.News()
}

func TestConformance(t *testing.T) {
	var out machine.Effects
	var created *Groups
	now := start
	command := func(rnd *rand.Rand, m machine.Machine, _ func(int) machine.Ref) {
		s := m.(*Groups)
		if s != created {
			created, now = s, start
			s.SetPartitions(now, 4)
			s.Create(&out)
			return
		}
		now = now.Add(time.Duration(rnd.IntN(3000)) * time.Millisecond)
		randomly(s, rnd, now, &out)
		if at, ok := s.NextDeadline(); ok && !at.After(now) {
			t.Fatalf("after Tick at %v the next is due at %v", now, at)
		}
	}
	machinetest.Run(t, machinetest.Subject{
		New:     func() machine.Machine { return New() },
		Out:     &out,
		Command: command,
		State:   func(m machine.Machine) string { return describe(m.(*Groups)) },
		Item:    600,
	}, 20)
}
