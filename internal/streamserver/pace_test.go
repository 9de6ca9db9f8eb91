// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/group"
)

// Who may read, and nothing else, writes records: claims that are renewed, members that
// restart. They stay on the disk as long as the events around them, so there is a limit, by
// time and by what events take. What frees something goes on.
func TestGroupsCannotFillTheDisk(t *testing.T) {
	r := newRig(t, Settings{Partitions: 16})
	var mine []group.Ownership
	claim := func() error {
		return r.do(func() error {
			cs := mine
			if cs == nil {
				for i := range 16 {
					cs = append(cs, group.Ownership{Partition: i, Owner: strings.Repeat("x", 256)})
				}
			}
			won, err := r.h.Claim(t.Context(), "claimed", cs)
			if err == nil {
				mine = won
			}
			return err
		})
	}
	storm := func(most int, do func() error) (n int, err error) {
		for err == nil && n < most {
			if err = do(); err == nil {
				n++
			}
		}
		return n, err
	}
	x := r.join("a", "0")
	r.pass(time.Second, x)
	r.h.pace.wrote(paceBurst - 1<<20) // most of the storm
	n, err := storm(1000, claim)
	if !errors.Is(err, ErrBusy) || n < 200 {
		t.Fatalf("%d claims of 16 partitions each: %v, want %v", n, err, ErrBusy)
	}
	if _, err := r.tryJoin("b", "0"); !errors.Is(err, ErrBusy) {
		t.Errorf("join: %v, want %v", err, ErrBusy)
	}
	for _, g := range x.has.Grants[:8] {
		if err := r.release(x, g.Partition, g.Epoch); err != nil {
			t.Errorf("release: %v", err)
		}
	}
	r.now = r.now.Add(time.Second)
	if n, err = storm(1000, claim); !errors.Is(err, ErrBusy) || n < 40 || n > 70 {
		t.Errorf("%d claims after a second: %v, want some 60", n, err)
	}
	r.append(0, 1, 30<<10)
	if n, err = storm(1000, claim); !errors.Is(err, ErrBusy) || n < 5 || n > 10 {
		t.Errorf("%d claims after an event of 30 KiB: %v, want some 7", n, err)
	}
	r.now = r.now.Add(time.Hour)
	runs := 0
	if n, err = storm(1000, func() error {
		runs++
		_, err := r.tryJoin("a", fmt.Sprint(runs))
		return err
	}); err != nil {
		t.Errorf("an hour later, after %d restarts of a member: %v", n, err)
	}
}
