// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/queue/record"
	"github.com/triagemq/triagemq/internal/queue/state"
)

// settingsIn returns the records that a queue writes of its settings: those of a
// change and of a snapshot.
func settingsIn(t *testing.T, cfg Config) (change, header []byte) {
	t.Helper()
	q := New(Config{}, 1)
	var out Effects
	q.Configure(epochStart, cfg, &out)
	q.Snapshot().Step(items(1), nil, &out.Effects)
	recs := out.Records()
	if len(recs) != 2 {
		t.Fatalf("%d records, want two", len(recs))
	}
	return recs[0], recs[1]
}

func TestSettingsAreWrittenInTheOldestLayoutThatFits(t *testing.T) {
	plain := sampleConfig()
	plain.Sessions = false
	saturable := plain
	saturable.Order.Saturation = Saturation{Waiting: 1 << 40, Oldest: time.Hour}
	finishing, both := plain, saturable
	finishing.Order.LevelOrder, both.Order.LevelOrder = FinishFirst, Lifo
	for _, tt := range []struct {
		what           string
		cfg            Config
		change, header record.Kind
	}{
		{"what was always there", plain, 0x09, 0x10},
		{"saturation", saturable, 0x0a, 0x15},
		{"an order inside levels", finishing, 0x0a, 0x15},
		{"both", both, 0x0a, 0x15},
	} {
		change, header := settingsIn(t, tt.cfg)
		if record.Kind(change[0]) != tt.change || record.Kind(header[0]) != tt.header {
			t.Errorf("%s: kinds %#02x and %#02x, want %#02x and %#02x", tt.what, change[0], header[0], tt.change, tt.header)
		}
		for _, rec := range [][]byte{change, header} {
			q := New(Config{}, 2)
			var out Effects
			if err := q.Replay(rec, &out.Effects); err != nil {
				t.Errorf("%s: replay of %#02x: %v", tt.what, rec[0], err)
			}
			if got := q.Config(); !reflect.DeepEqual(got, tt.cfg) {
				t.Errorf("%s: replay of %#02x gives\n%+v, want\n%+v", tt.what, rec[0], got, tt.cfg)
			}
			if tt.change == record.KindConfig {
				continue
			}
			for cut := range rec { // unlike the items of a list, settings have an end
				if err := New(Config{}, 2).Replay(rec[:cut], &out.Effects); !errors.Is(err, state.ErrCorrupt) {
					t.Errorf("%s: %#02x cut to %d bytes: %v, want %v", tt.what, rec[0], cut, err, state.ErrCorrupt)
				}
			}
		}
	}
}

func TestUnknownSettingsAreRefused(t *testing.T) {
	const levelOrder, endOfSettings = 2, 0 // as on disk
	cfg := Config{Order: Order{Saturation: Saturation{Waiting: 1}}}
	rec, _ := settingsIn(t, cfg)
	head := rec[: len(rec)-1 : len(rec)-1]
	for _, tail := range [][]byte{{0x7f, endOfSettings}, {levelOrder, 3, endOfSettings}} {
		var out Effects
		if err := New(Config{}, 1).Replay(append(head, tail...), &out.Effects); !errors.Is(err, state.ErrCorrupt) {
			t.Errorf("settings of a later version, %v: %v, want %v", tail, err, state.ErrCorrupt)
		}
	}
}
