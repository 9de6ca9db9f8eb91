// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/clock"
)

// Who sets the clock of a machine is told what
// follows from it, once.
func TestOperatorIsToldOfTheWallClock(t *testing.T) {
	var text bytes.Buffer
	stepped := 0
	w := clockWatch{log: slog.New(slog.NewTextHandler(&text, nil)), stepped: func() { stepped++ }}
	var got []string
	for _, st := range []clock.State{
		{},
		{Off: 3 * time.Hour}, // perhaps for a moment only
		{Stepped: 3 * time.Hour},
		{Stepped: 3 * time.Hour, Off: -10 * time.Millisecond},
		{Stepped: 3 * time.Hour, Off: -2 * time.Second},
		{Stepped: 3 * time.Hour, Off: -time.Second},
		{Stepped: 3 * time.Hour, Off: -time.Millisecond},
		{Stepped: 3 * time.Hour},
		{Stepped: 3 * time.Hour, Refused: 1000 * time.Hour},
		{Stepped: 3 * time.Hour, Refused: 1000 * time.Hour},
	} {
		text.Reset()
		w.look(st)
		_, line, _ := strings.Cut(strings.TrimSpace(text.String()), "level=")
		level, _, _ := strings.Cut(line, " ")
		got = append(got, level)
	}
	if want := []string{"", "", "WARN", "", "WARN", "", "", "INFO", "ERROR", ""}; !slices.Equal(got, want) {
		t.Errorf("the log has\n%q, want\n%q", got, want)
	}
	if stepped != 1 { // tokens may have ended by the wall clock whose timers still run
		t.Errorf("rights were looked at %d times, want once", stepped)
	}
}
