// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/triagetest"
)

// order runs a pattern and returns the bodies in the order in which they were done, and
// the pools that did them.
func order(t *testing.T, name string) (done, pools []string) {
	t.Helper()
	yaml, err := os.ReadFile("triagemq.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b := triagetest.Start(t, string(yaml))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	if err := patterns[name](ctx, b.Client(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for line := range strings.Lines(out.String()) {
		pool, body, _ := strings.Cut(strings.TrimSpace(line), " ")
		done, pools = append(done, strings.TrimSpace(body)), append(pools, pool)
	}
	return done, pools
}

func TestStrictServesHighFirst(t *testing.T) {
	got, _ := order(t, "strict")
	if want := "high 1,high 2,high 3,low 1,low 2,low 3"; strings.Join(got, ",") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestSeparatePoolsDoNotWaitForEachOther(t *testing.T) {
	got, pools := order(t, "separate")
	// Those before it in its pool may end after it: the pool has three slots.
	if slices.Index(got, "high 6") < slices.Index(got, "low 2") {
		t.Errorf("%v: the last high message waits for the low ones", got)
	}
	for i, body := range got {
		if want := map[bool]string{true: "urgent", false: "routine"}[strings.HasPrefix(body, "high")]; pools[i] != want {
			t.Errorf("%s was done by %s, want %s", body, pools[i], want)
		}
	}
}

func TestWeightsAreShares(t *testing.T) {
	got, _ := order(t, "weighted")
	high := 0
	for _, body := range got[:8] {
		if strings.HasPrefix(body, "high") {
			high++
		}
	}
	if high != 6 {
		t.Errorf("%v: %d of the first 8 are high, want 6", got, high)
	}
}

func TestReserveTakesHighWhileTheCommonPoolIsBusy(t *testing.T) {
	got, pools := order(t, "reserve")
	if strings.Join(got, ",") != "high 1,low 1" || pools[0] != "reserve" || pools[1] != "common" {
		t.Errorf("%v by %v", got, pools)
	}
}
