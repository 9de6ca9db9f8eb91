// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
)

// watched is a journal of which only Watch is used.
type watched struct {
	journal.Journal
	fns []func(journal.Status)
}

func (w *watched) Watch(_ journal.Claim, fn func(journal.Status)) { w.fns = append(w.fns, fn) }

func TestOperatorIsToldOfAFullDiskOnce(t *testing.T) {
	var log bytes.Buffer
	w := new(watched)
	d := &disk{Journal: w, log: slog.New(slog.NewTextHandler(&log, nil))}
	heard := 0
	for range 2 { // shards
		d.Watch(journal.Claim{}, func(journal.Status) { heard++ })
	}
	for _, s := range []journal.Status{{}, {Full: true}, {Durable: 1, Full: true}, {}, {}, {Full: true, Err: errors.New("the end")}} {
		for _, fn := range w.fns {
			fn(s)
		}
	}
	if heard != 12 {
		t.Errorf("the shards heard %d changes, want 12", heard)
	}
	text := log.String()
	if full, space := strings.Count(text, "disk is full"), strings.Count(text, "space again"); full != 1 || space != 1 {
		t.Errorf("logged %d times that it is full and %d times that it is not, want once each:\n%s", full, space, text)
	}
}
