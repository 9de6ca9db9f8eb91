// SPDX-License-Identifier: Apache-2.0

// Package machinetest is the conformance suite of state machines: it checks the
// invariants that package machine states, for any machine that a test can drive with
// random commands.
package machinetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triagemq/triagemq/internal/machine"
)

// Subject is a machine under test.
type Subject struct {
	// New returns an empty machine, as recovery makes it.
	New func() machine.Machine
	// Out is where commands write.
	Out *machine.Effects
	// Command runs one random command on a machine that New has made. Bodies that it
	// needs come from body.
	Command func(rnd *rand.Rand, m machine.Machine, body func(size int) machine.Ref)
	// State describes everything that a restart must find again.
	State func(m machine.Machine) string
	// Item is how many bytes one item of a snapshot takes at most.
	Item int
	// Commands is how many commands a run has; default 60.
	Commands int
}

// Run checks a subject with a number of seeds.
func Run(t *testing.T, s Subject, seeds int) {
	if s.Commands == 0 {
		s.Commands = 60
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			(&run{Subject: s, t: t, seed: seed}).replayIsLive()
			for cut := 0; cut <= s.Commands; cut += max(1, s.Commands/20) {
				r := &run{Subject: s, t: t, seed: seed}
				r.snapshotAt(cut)
				r = &run{Subject: s, t: t, seed: seed}
				r.abandonedAt(cut)
			}
		})
	}
}

// run is one machine and its history.
type run struct {
	Subject
	t    *testing.T
	seed uint64
	rnd  *rand.Rand
	m    machine.Machine
	log  [][]byte
	refs map[machine.Ref]int // added and not freed
	next uint64              // place of the next body
}

func (r *run) start() {
	r.rnd = rand.New(rand.NewPCG(r.seed, 1))
	r.m, r.log, r.refs, r.next = r.New(), nil, map[machine.Ref]int{}, 1
	r.Out.SetPrefix([]byte{0xfe, 0xff}) // which no machine may depend on
}

func (r *run) body(size int) machine.Ref {
	r.next += uint64(size) + 1
	return machine.Ref{At: r.next, Size: uint32(size)}
}

func (r *run) command() {
	r.Command(r.rnd, r.m, r.body)
	r.collect()
}

// collect takes over what was written.
func (r *run) collect() {
	r.t.Helper()
	for _, rec := range r.Out.Records() {
		rec, ok := bytes.CutPrefix(rec, []byte{0xfe, 0xff})
		if !ok {
			r.t.Fatalf("a record without the prefix: %x", rec)
		}
		r.log = append(r.log, slices.Clone(rec))
	}
	count(r.refs, r.Out)
	r.Out.Reset()
	if err := r.m.Check(); err != nil {
		r.t.Fatal(err)
	}
}

func count(refs map[machine.Ref]int, out *machine.Effects) {
	for _, ref := range out.Added {
		refs[ref]++
	}
	for _, ref := range out.Freed {
		if refs[ref]--; refs[ref] == 0 {
			delete(refs, ref)
		}
	}
}

// replayIsLive checks invariants 1 and 4.
func (r *run) replayIsLive() {
	r.start()
	for range r.Commands {
		r.command()
		r.checkRefs(r.m, r.refs, "live")
	}
	r.replay(r.log, "replay")
}

// replay makes a machine of records and compares it with the live one.
func (r *run) replay(log [][]byte, what string) {
	r.t.Helper()
	m, refs := r.New(), map[machine.Ref]int{}
	var out machine.Effects
	for i, rec := range log {
		if err := m.Replay(rec, &out); err != nil {
			r.t.Fatalf("%s: record %d of %d: %v", what, i, len(log), err)
		}
		if out.Count() > 0 {
			r.t.Fatalf("%s: record %d made the machine write", what, i)
		}
		count(refs, &out)
		out.Reset()
	}
	if !m.Restored() {
		r.t.Fatalf("%s: not restored at the end", what)
	}
	if err := m.Check(); err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
	if got, want := r.State(m), r.State(r.m); got != want {
		r.t.Fatalf("%s:\ngot  %s\nwant %s", what, got, want)
	}
	r.checkRefs(m, refs, what)
	if m.Latest() != r.m.Latest() {
		r.t.Fatalf("%s: the latest time is %v, want %v", what, m.Latest(), r.m.Latest())
	}
}

// checkRefs compares the bodies that a machine refers to with what it added and freed.
// It walks in one step and in many.
func (r *run) checkRefs(m machine.Machine, refs map[machine.Ref]int, what string) {
	r.t.Helper()
	for _, items := range []int{1 << 30, 3} {
		found := map[machine.Ref]int{}
		var at machine.Cursor
		for done := false; !done; {
			b := machine.Budget{Items: items, Bytes: 1 << 30}
			at, done = m.Refs(at, &b, func(ref machine.Ref) { found[ref]++ })
			if b.Items == items && !done {
				r.t.Fatalf("%s: Refs did nothing for its budget", what)
			}
		}
		for ref, n := range found {
			if refs[ref] != n {
				r.t.Fatalf("%s: refers %d times to %v, added %d times more than freed", what, n, ref, refs[ref])
			}
		}
		if len(found) != len(refs) {
			r.t.Fatalf("%s: refers to %d bodies, added %d more than freed", what, len(found), len(refs))
		}
	}
}

// snapshotAt checks invariants 2 and 3: after a number of commands it writes a snapshot
// in small steps, with a command before most of them.
func (r *run) snapshotAt(cut int) {
	r.start()
	for range cut {
		r.command()
	}
	began, snap := len(r.log), r.m.Snapshot()
	what := fmt.Sprintf("snapshot after command %d", cut)
	for done, n := false, 0; !done; n++ {
		if n > 100*(r.Commands+10) {
			r.t.Fatalf("%s does not end", what)
		}
		if n > 0 && n < r.Commands && r.rnd.IntN(4) > 0 {
			r.command()
		}
		done = r.step(snap, what)
		if n < 3 && !done { // cut short: nothing must depend on its rest
			r.partly(r.log[began:], what)
		}
	}
	r.replay(r.log[began:], what)
	r.replay(r.log, what+", with what came before")
	for range 5 {
		r.command()
	}
	r.replay(r.log[began:], what+" and commands")
}

// abandonedAt checks that a snapshot that was given up, or cut short by a crash, is no
// more than new places of bodies for those who know what was before it. Commands may
// come before the first piece of the next one: that shows what they did.
func (r *run) abandonedAt(cut int) {
	r.start()
	for n := 0; n < cut || len(r.log) == 0; n++ { // its first record is a command's
		r.command()
	}
	what := fmt.Sprintf("snapshot given up after command %d", cut)
	snap := r.m.Snapshot()
	for range 1 + r.rnd.IntN(8) {
		if r.step(snap, what) {
			break
		}
		r.command()
	}
	r.replay(r.log, what)
	snap = r.m.Snapshot()
	for range r.rnd.IntN(3) {
		r.command()
	}
	began := len(r.log)
	for done, n := false, 0; !done; n++ {
		if n > 0 && n < r.Commands && r.rnd.IntN(2) > 0 {
			r.command()
		}
		done = r.step(snap, what+", then another")
	}
	r.replay(r.log[began:], what+", from another on")
	r.replay(r.log, what+", and another")
}

// step writes one piece and checks that it stays in its budget and moves only bodies
// that were announced.
func (r *run) step(snap machine.Snapshot, what string) (done bool) {
	r.t.Helper()
	budget := machine.Budget{Items: 1 + r.rnd.IntN(4), Bytes: 1 + r.rnd.IntN(200)}
	upcoming := map[machine.Ref]bool{}
	snap.Upcoming(budget, func(ref machine.Ref) { upcoming[ref] = true })
	left := budget
	done = snap.Step(&left, func(ref machine.Ref) (machine.Ref, bool) {
		if !upcoming[ref] {
			r.t.Fatalf("%s: asks for %v, which was not announced", what, ref)
		}
		if r.rnd.IntN(3) > 0 {
			return ref, false
		}
		return r.body(int(ref.Size)), true
	}, r.Out)
	if left.Items >= budget.Items {
		r.t.Fatalf("%s: a step visited nothing", what)
	}
	if n := r.Out.Payload(); n > budget.Bytes+r.Item {
		r.t.Fatalf("%s: a step wrote %d bytes of %d", what, n, budget.Bytes)
	}
	r.collect()
	return done
}

// partly replays a snapshot without its end.
func (r *run) partly(log [][]byte, what string) {
	r.t.Helper()
	m := r.New()
	for i, rec := range log {
		if err := m.Replay(rec, new(machine.Effects)); err != nil {
			r.t.Fatalf("%s, cut short: record %d: %v", what, i, err)
		}
	}
	if m.Restored() {
		r.t.Fatalf("%s: restored without its end", what)
	}
}
