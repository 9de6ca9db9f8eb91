// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/triagetest"
)

func TestBronzeStarvesOnlyUnderStrictAndGoldIsInTimeAboveAFlood(t *testing.T) {
	tb := triagetest.Start(t, "")
	host := "localhost:" + tb.Port()
	b := &broker{
		http: "http://" + host, amqp: tb.ConnectionString(), key: "SAS_KEY_VALUE",
		length: 5 * time.Second, // until a flood of bronze is late
	}
	for _, l := range lanes {
		var out strings.Builder
		done, err := b.run(t.Context(), &out, l)
		if err != nil {
			t.Fatalf("%s: %v", l.name, err)
		}
		bronze := 0
		for _, s := range done {
			if s.plan == "bronze" {
				bronze++
			}
		}
		switch {
		case l.name == "strict" && b.states["bronze"] == "met":
			t.Errorf("%s: bronze starves and its objective is %q\n%s", l.name, b.states["bronze"], &out)
		case l.name != "strict" && bronze == 0:
			t.Errorf("%s: no bronze was served\n%s", l.name, &out)
		case l.name == "deadline" && (b.states["gold"] == "missed" || b.states["bronze"] == "met"):
			t.Errorf("%s: gold is %s and bronze is %s\n%s", l.name, b.states["gold"], b.states["bronze"], &out)
		case l.bound > 0 && violations(done, l.bound) > 0:
			t.Errorf("%s: the bound is exceeded\n%s", l.name, &out)
		}
		t.Log(out.String())
	}
}
