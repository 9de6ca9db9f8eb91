// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/ordering"
)

func TestWithinIsPartOfTheOrder(t *testing.T) {
	for text, want := range map[string]ordering.Within{
		`{}`:                 ordering.Fifo,
		`{"within": "fifo"}`: ordering.Fifo,
		`{"within": "lifo"}`: ordering.Lifo,
		`{"within": "finishFirst", "fairKey": "run"}`: ordering.FinishFirst,
	} {
		if got := parse(t, text).Order().Within; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestWithinFaults(t *testing.T) {
	for _, tt := range []struct{ policy, want string }{
		{`{"within": "random"}`, `within: "random" is not one of fifo, lifo, finishFirst`},
		{`{"within": "finishFirst"}`, "within: there is no fairKey"},
		{`{"within": "lifo", "fairKey": "tenant"}`, "within: fair keys take turns by age"},
		{`{"within": "lifo", "discipline": "aging", "aging": {"every": "1m", "upTo": 9}}`, "within: under aging the oldest goes first"},
		{`{"within": "lifo", "discipline": "deadline"}`, "within: under deadline the oldest goes first"},
		{`{"within": "lifo", "saturation": {"oldest": "1m"}}`, "within: under lifo the oldest always waits long"},
	} {
		if _, err := Parse([]byte(tt.policy)); !errors.Is(err, ErrInvalid) || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.policy, err, tt.want)
		}
	}
	for _, good := range []string{
		`{"within": "lifo", "saturation": {"waiting": 9}}`, `{"within": "lifo", "discipline": "weighted"}`,
		`{"within": "finishFirst", "fairKey": "run", "discipline": "aging", "aging": {"every": "1m", "upTo": 9}}`,
	} {
		parse(t, good)
	}
}

func TestWithinInWords(t *testing.T) {
	for _, tt := range []struct {
		policy, want, never string
	}{
		{`{"within": "lifo"}`, "inside a level the newest goes first; while newer ones keep coming, an old one waits for ever.", "the oldest"},
		{
			`{"within": "finishFirst", "fairKey": "run", "keyDefaults": {"concurrency": 2, "weight": 3}}`,
			"all others with its value of run go ahead of values that were not started, until none is left in the queue", "take turns, by weight",
		},
		{
			`{"within": "finishFirst", "fairKey": "run", "keyDefaults": {"concurrency": 2, "weight": 3}}`,
			"every key has at most 2 messages in flight.", "turns in a row",
		},
		{
			`{"within": "finishFirst", "fairKey": "run", "keyDefaults": {"weight": 3}}`,
			"keys are given weights, but those count only where keys take turns, under fifo.", "turns in a row",
		},
		{
			`{"within": "finishFirst", "fairKey": "run", "discipline": "aging", "aging": {"every": "1m", "upTo": 9}}`,
			"so what is said above of a message holds for its level.", "take turns, by weight",
		},
	} {
		got := strings.Join(parse(t, tt.policy).Consequences(0), "\n")
		if !strings.Contains(got, tt.want) || strings.Contains(got, tt.never) {
			t.Errorf("%s\ntold:\n%s\nwant: %s\nnever: %s", tt.policy, got, tt.want, tt.never)
		}
	}
	if got := Diff(parse(t, `{}`), parse(t, `{"within": "lifo"}`)); len(got) != 1 || got[0] != "the order inside a level changes from fifo to lifo." {
		t.Errorf("difference: %q", got)
	}
}
