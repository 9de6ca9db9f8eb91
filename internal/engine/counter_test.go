// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/machine/machinetest"
)

// counter is a machine of a few numbers, each with a body that may be replaced. Records
// say what is added, not what the sum is, so that a replay that applies one twice, or
// leaves one out, is noticed.
type counter struct {
	sums    [8]uint64
	bodies  [8]machine.Ref
	due     time.Time // when to count by itself
	begun   bool
	partly  bool // inside a snapshot
	brought int  // which has come this far
}

// The kinds of its records.
const (
	added = 1 + iota // index, number, body
	header
	chunk // index, sum, body
	end
)

func (c *counter) add(i int, n uint64, body machine.Ref, out *machine.Effects) {
	out.Begin(added)
	out.Byte(byte(i))
	out.Uint(n)
	out.Ref(body)
	out.End()
	c.apply(i, n, body, out)
}

func (c *counter) apply(i int, n uint64, body machine.Ref, out *machine.Effects) {
	c.begun = true
	c.sums[i] += n
	if body != (machine.Ref{}) {
		c.put(i, body, out)
	}
}

func (c *counter) put(i int, body machine.Ref, out *machine.Effects) {
	if old := c.bodies[i]; old != (machine.Ref{}) {
		out.Freed = append(out.Freed, old)
	}
	if c.bodies[i] = body; body != (machine.Ref{}) {
		out.Added = append(out.Added, body)
	}
}

var errCounter = errors.New("malformed record of a counter")

func (c *counter) Replay(rec []byte, out *machine.Effects) error {
	r := machine.NewReader(rec)
	switch kind := r.Byte(); kind {
	case added, chunk:
		i, n, body := int(r.Byte()), r.Uint(), r.Ref()
		switch {
		case r.Bad() || i >= len(c.sums):
			return errCounter
		case kind == added && c.partly && i >= c.brought: // its chunk is yet to come
		case kind == added:
			c.apply(i, n, body, out)
		case c.partly:
			c.sums[i], c.brought = n, i+1
			c.put(i, body, out)
		case body != c.bodies[i]: // it was moved
			c.put(i, body, out)
		}
	case header:
		if c.begun && !c.partly {
			return nil
		}
		for i := range c.bodies {
			c.put(i, machine.Ref{}, out)
		}
		*c = counter{begun: true, partly: true}
	case end:
		c.partly = false
	default:
		return fmt.Errorf("%w: kind %d", errCounter, kind)
	}
	return nil
}

func (c *counter) Restored() bool                  { return !c.partly }
func (c *counter) SnapshotSize() uint64            { return 200 }
func (c *counter) Settling() (uint64, uint64)      { return uint64(len(c.bodies)), 0 }
func (c *counter) NextDeadline() (time.Time, bool) { return c.due, !c.due.IsZero() }
func (c *counter) Latest() time.Time               { return time.Time{} }
func (c *counter) Check() error                    { return nil }
func (c *counter) Snapshot() machine.Snapshot      { return &counterSnapshot{c: c, next: -1} }

func (c *counter) Refs(from machine.Cursor, b *machine.Budget, fn func(machine.Ref)) (machine.Cursor, bool) {
	for ; int(from) < len(c.bodies) && b.Items > 0; from, b.Items = from+1, b.Items-1 {
		if ref := c.bodies[from]; ref != (machine.Ref{}) {
			fn(ref)
		}
	}
	return from, int(from) == len(c.bodies)
}

type counterSnapshot struct {
	c    *counter
	next int
}

func (s *counterSnapshot) Upcoming(b machine.Budget, fn func(machine.Ref)) {
	for i := max(s.next, 0); i < len(s.c.bodies) && b.Items > 0; i, b.Items = i+1, b.Items-1 {
		if ref := s.c.bodies[i]; ref != (machine.Ref{}) {
			fn(ref)
		}
	}
}

func (s *counterSnapshot) Step(b *machine.Budget, move func(machine.Ref) (machine.Ref, bool), out *machine.Effects) bool {
	before := out.Payload()
	defer func() { b.Bytes -= out.Payload() - before }()
	for first := true; first || b.Items > 0 && out.Payload()-before < b.Bytes; first = false {
		b.Items--
		switch i := s.next; {
		case i < 0:
			out.Begin(header)
		case i == len(s.c.sums):
			out.Begin(end)
			out.End()
			return true
		default:
			if old := s.c.bodies[i]; move != nil && old != (machine.Ref{}) {
				if to, ok := move(old); ok {
					s.c.put(i, to, out)
				}
			}
			out.Begin(chunk)
			out.Byte(byte(i))
			out.Uint(s.c.sums[i])
			out.Ref(s.c.bodies[i])
		}
		out.End()
		s.next++
	}
	return false
}

func TestCounterConforms(t *testing.T) {
	var out machine.Effects
	machinetest.Run(t, machinetest.Subject{
		New: func() machine.Machine { return &counter{} },
		Out: &out,
		Command: func(rnd *rand.Rand, m machine.Machine, body func(int) machine.Ref) {
			var ref machine.Ref
			if rnd.IntN(2) == 0 {
				ref = body(1 + rnd.IntN(9))
			}
			m.(*counter).add(rnd.IntN(8), rnd.Uint64N(100), ref, &out)
		},
		State: func(m machine.Machine) string { return fmt.Sprint(m.(*counter).sums, m.(*counter).bodies) },
		Item:  30,
	}, 10)
}
