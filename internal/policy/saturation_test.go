// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue"
)

const crowded = `{"saturation": {"waiting": 10000, "oldest": "5m"}, "classes": [
	{"name": "urgent", "level": 9, "when": "a = 1", "weight": 8}, {"name": "paying", "level": 7, "when": "a = 2", "weight": 3},
	{"name": "free", "level": 2, "weight": 1}]}`

func TestSaturationIsPartOfTheOrder(t *testing.T) {
	got := parse(t, crowded).Order()
	want := ordering.Order{
		Saturation: ordering.Saturation{Waiting: 10000, Oldest: 5 * time.Minute},
		Weight:     []uint32{2: 1, 7: 3, 9: 8},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	idle := parse(t, strings.Replace(crowded, `{"saturation"`, `{"discipline": "weighted", "saturation"`, 1))
	if got := idle.Order().Saturation; got != (ordering.Saturation{}) {
		t.Errorf("under weighted the order is %+v", got)
	}
	if text := strings.Join(idle.Consequences(0), "\n"); !strings.Contains(text, "saturation is given, but counts only under the discipline strict.") {
		t.Errorf("saturation under weighted:\n%s", text)
	}
}

func TestSaturationFaults(t *testing.T) {
	for _, tt := range []struct{ policy, want string }{
		{`{"saturation": {}}`, "saturation: needs waiting"},
		{`{"saturation": {"waiting": 0}}`, "saturation.waiting: 0 is not a whole number in 1.."},
		{`{"saturation": {"oldest": "0s"}}`, "saturation.oldest: must be longer than zero"},
		{`{"saturation": {"waitin": 3}}`, "saturation.waitin: unknown; did you mean waiting?"},
		{`{"saturation": 3}`, "saturation: must be an object"},
		{`{"saturation": {"waiting": 3}, "classes": [{"name": "a"}]}`, "classes[0].level: missing: it is levels that have shares"},
	} {
		if _, err := Parse([]byte(tt.policy)); !errors.Is(err, errInvalid) || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.policy, err, tt.want)
		}
	}
}

func TestSaturationInWords(t *testing.T) {
	for _, tt := range []struct {
		saturation string
		want       []string
	}{
		{`{"waiting": 10000, "oldest": "5m"}`, []string{
			"When 10000 messages wait, or one has waited 5m, the classes that have messages share the deliveries by their weights, until at most 5000 wait and none has waited more than 2m30s.",
			"class urgent (level 9): served before all other classes; when saturated at least 66.7 % of the deliveries while it has messages; at most 2 deliveries of other classes between two of its own.",
			"class free (level 2): served only when no message of urgent and paying is ready; when saturated at least 8.33 % of the deliveries while it has messages; at most 13 deliveries of other classes between two of its own.",
			"class free (level 2): one that has waited 5m has at most 13 deliveries of other classes ahead of it, and 14 for each older message of its level.",
		}},
		{`{"waiting": 10001}`, []string{
			"When 10001 messages wait, the classes that have messages share the deliveries by their weights, until at most 5000 wait.",
			"class free (level 2): while fewer than 10001 messages are ready and those of urgent and paying keep arriving, there is no bound.",
		}},
		{`{"oldest": "1m"}`, []string{"When one has waited 1m, the classes that have messages share the deliveries by their weights, until none has waited more than 30s."}},
	} {
		p := parse(t, strings.Replace(crowded, `{"waiting": 10000, "oldest": "5m"}`, tt.saturation, 1))
		got := strings.Join(p.Consequences(30*time.Second), "\n")
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s\ntext:\n%s\nmissing: %s", tt.saturation, got, want)
			}
		}
	}
	plain := parse(t, strings.Replace(crowded, `"saturation": {"waiting": 10000, "oldest": "5m"},`, "", 1))
	if got := Diff(plain, parse(t, crowded)); len(got) != 1 || got[0] != "saturation changes from none to when 10000 messages wait, or one has waited 5m." {
		t.Errorf("difference: %q", got)
	}
}

// TestSaturationBoundHolds has high messages come without end: a low one is served
// after the time and the deliveries that Consequences promises.
func TestSaturationBoundHolds(t *testing.T) {
	p := parse(t, strings.Replace(crowded, `"waiting": 10000, `, "", 1))
	q := queue.New(queue.Config{Order: p.Order()}, 1)
	var out queue.Effects
	send := func(at time.Time, level queue.Level) {
		t.Helper()
		if err := q.Enqueue(at, []queue.Arrival{{Level: level}}, make([]queue.SeqNo, 1), &out); err != nil {
			t.Fatal(err)
		}
	}
	now, late := noon, 0
	for range 3 {
		send(now, 2)
	}
	free := p.between(&p.Classes[2])
	for left := 3; left > 0; now = now.Add(time.Second) {
		send(now, 9)
		send(now, 7)
		d, _ := q.Take(now, queue.TakeOptions{ReceiveAndDelete: true}, &out)
		out.Reset()
		waited := now.Sub(noon)
		if waited >= p.Saturation.Oldest {
			late++
		}
		if d.Level != 2 {
			continue
		}
		if left--; waited < p.Saturation.Oldest {
			t.Errorf("a low one is served after %v although the queue is not saturated", waited)
		}
		if most := (3 - left) * (int(free) + 1); late > most {
			t.Errorf("low message %d is delivery %d from the time on, want at most %d", 3-left, late, most)
		}
		if late > 100 {
			t.Fatal("the low ones starve")
		}
	}
}
