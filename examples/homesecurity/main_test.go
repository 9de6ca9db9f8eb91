// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/triagetest"
)

func TestGeneratorSendsWhatIsDue(t *testing.T) {
	b := triagetest.Start(t, string(definitions))
	g := &generator{client: b.Client(), homes: 100, sensors: []string{"door", "smoke"}, speed: 60}
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	if err := g.run(ctx, t.Output()); err != nil {
		t.Fatal(err)
	}
	// Two sensors of a hundred homes report every second.
	if n := g.sent.Load(); n < 300 || n > 600 {
		t.Errorf("%d readings in two seconds and a half, want about 500", n)
	}
}

func TestCommandsSayWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--homes", "0"}, "--homes: 0"},
		{[]string{"--speed", "-1"}, "--speed: -1"},
		{[]string{"add-sensor"}, "which sensor?"},
		{[]string{"add-sensor", "A B", "--broker", "x"}, `"A B"`},
		{[]string{"instance", "--at", "http://127.0.0.1:1"}, "no demo runs at http://127.0.0.1:1"},
		{[]string{"instance", "two"}, `"two"`},
	} {
		err := run(t.Context(), c.args, t.Output())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
	if !slices.ContainsFunc(sensorTypes, func(s sensorType) bool { return s.name == "water" }) {
		t.Error("the usage names a sensor that nobody knows")
	}
}
