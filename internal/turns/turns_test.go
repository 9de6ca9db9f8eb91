// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// Work of an owner that has little waits for one piece of another owner that has much.
func TestOwnersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := New(1, 1)
		leave, err := turns.Take(t.Context(), "much")
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		work := func(owner string) {
			leave, err := turns.Take(t.Context(), owner)
			if err != nil {
				t.Error(err)
				return
			}
			order = append(order, owner) // guarded by the turn
			leave()
		}
		for range 10 {
			go work("much")
		}
		synctest.Wait()
		go work("little")
		synctest.Wait()
		leave()
		synctest.Wait()
		if at := slices.Index(order, "little"); len(order) != 11 || at > 1 {
			t.Errorf("in the order %q", order)
		}
		if len(turns.lines) != 0 {
			t.Errorf("%d lines are kept", len(turns.lines))
		}
	})
}

// An owner has as many slots as each may have, and no more.
func TestOwnersHaveSomeSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := New(3, 2)
		taken := 0
		for range 5 {
			go func() {
				leave, err := turns.Take(t.Context(), "a")
				if err == nil {
					taken++
					defer leave()
				}
				<-t.Context().Done()
			}()
			synctest.Wait()
		}
		if taken != 2 {
			t.Errorf("one owner has %d slots, want 2", taken)
		}
		if leave, err := turns.Take(t.Context(), "b"); err != nil {
			t.Error(err)
		} else {
			leave()
		}
	})
}

// Who gives up leaves nothing behind, wherever it has waited.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, gone := New(1, 1), errors.New("gone")
		leave, err := turns.Take(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		for _, owner := range []string{"a", "b", "b"} {
			go func() {
				if _, err := turns.Take(ctx, owner); !errors.Is(err, gone) {
					t.Errorf("%s: %v", owner, err)
				}
			}()
		}
		synctest.Wait()
		cancel(gone)
		synctest.Wait()
		leave()
		if len(turns.lines) != 0 || len(turns.slots) != 0 {
			t.Errorf("%d lines and %d slots are kept", len(turns.lines), len(turns.slots))
		}
	})
}
