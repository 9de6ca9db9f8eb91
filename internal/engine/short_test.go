// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
)

// A sender that comes when the journal has space again is not refused
// because the news of it has not come yet.
func TestFullIsWhatTheJournalSaysNow(t *testing.T) {
	r := newRig(t, Options{})
	st := r.wal.Status(r.e.claim)
	st.Full = true
	r.e.mail.report(st)
	asked, full := false, false
	r.do(func(h *counterHost) { asked, full = true, h.tx.StillFull() }, nil)
	r.step()
	if !asked || full {
		t.Errorf("asked %t: full %t, and the journal has space", asked, full)
	}
}

// When there is no space at all, the callers that wait are refused after a few seconds, and
// later ones at once; what must not be lost waits, and is done when there is space.
func TestCallersAreRefusedWhileNothingCanBeWritten(t *testing.T) {
	r := newRig(t, Options{})
	j := &flaky{rnd: rand.New(rand.NewPCG(1, 1))}
	r.wrap = func(w journal.Journal) journal.Journal { j.Journal = w; return j }
	r.crash(1)
	id := r.define()
	j.full = 100
	written := false
	r.do(func(h *counterHost) { h.add(id, 0, 1, machine.Ref{}) }, func() { written = true })
	r.step()
	if !r.e.Stuck() {
		t.Fatal("the engine is not stuck")
	}
	var refused []error
	ask := func() {
		if err := r.e.SubmitReserved(&Steps{Step: func(*Tx) (bool, error) { return true, nil }, Done: func(err error) { refused = append(refused, err) }}); err != nil {
			t.Fatal(err)
		}
		r.step()
	}
	kept := false
	r.do(func(*counterHost) { kept = true }, nil)
	if ask(); len(refused) > 0 {
		t.Fatalf("refused at once: %v", refused)
	}
	r.now = r.now.Add(refuseAfter)
	r.step()
	ask()
	for _, err := range refused {
		if !errors.Is(err, ErrDiskFull) {
			t.Errorf("refused with %v, want %v", err, ErrDiskFull)
		}
	}
	if len(refused) != 2 || kept || written {
		t.Errorf("%d are refused, kept %t, written %t; want 2 and nothing done", len(refused), kept, written)
	}
	j.full = 0
	r.now = r.now.Add(time.Second)
	r.settle()
	if !kept || !written {
		t.Errorf("when there is space: kept %t, written %t", kept, written)
	}
}
