// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/ordering"
)

func TestWithinIsPartOfTheOrder(t *testing.T) {
	for text, want := range map[string]ordering.LevelOrder{
		`{}`:                     ordering.Fifo,
		`{"levelOrder": "fifo"}`: ordering.Fifo,
		`{"levelOrder": "lifo"}`: ordering.Lifo,
		`{"levelOrder": "finishFirst", "fairKey": "run"}`: ordering.FinishFirst,
	} {
		if got := parse(t, text).Order().LevelOrder; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestWithinFaults(t *testing.T) {
	for _, tt := range []struct{ policy, want string }{
		{`{"levelOrder": "random"}`, `levelOrder: "random" is not one of fifo, lifo, finishFirst`},
		{`{"levelOrder": "finishFirst"}`, "levelOrder: finishFirst needs a fairKey"},
		{`{"levelOrder": "lifo", "fairKey": "tenant"}`, "levelOrder: lifo cannot be combined with fairKey"},
		{`{"levelOrder": "lifo", "discipline": "aging", "aging": {"interval": "1m", "maxLevel": 9}}`, "levelOrder: under aging the oldest is served first"},
		{`{"levelOrder": "lifo", "discipline": "deadline"}`, "levelOrder: under deadline the oldest is served first"},
		{`{"levelOrder": "lifo", "saturation": {"oldest": "1m"}}`, "levelOrder: under lifo the oldest always waits long"},
	} {
		if _, err := Parse([]byte(tt.policy)); !errors.Is(err, errInvalid) || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.policy, err, tt.want)
		}
	}
	for _, good := range []string{
		`{"levelOrder": "lifo", "saturation": {"waiting": 9}}`, `{"levelOrder": "lifo", "discipline": "weighted"}`,
		`{"levelOrder": "finishFirst", "fairKey": "run", "discipline": "aging", "aging": {"interval": "1m", "maxLevel": 9}}`,
	} {
		parse(t, good)
	}
}

func TestWithinInWords(t *testing.T) {
	for _, tt := range []struct {
		policy, want, never string
	}{
		{`{"levelOrder": "lifo"}`, "inside a level the newest is served first; an old one starves while newer ones keep arriving.", "the oldest"},
		{
			`{"levelOrder": "finishFirst", "fairKey": "run", "keyDefaults": {"concurrency": 2, "weight": 3}}`,
			"all others with its value of run precede values that were not started, until none is left in the queue", "take turns, by weight",
		},
		{
			`{"levelOrder": "finishFirst", "fairKey": "run", "keyDefaults": {"concurrency": 2, "weight": 3}}`,
			"every key has at most 2 messages in flight.", "turns in a row",
		},
		{
			`{"levelOrder": "finishFirst", "fairKey": "run", "keyDefaults": {"weight": 3}}`,
			"keys are given weights, but those count only where keys take turns, under fifo.", "turns in a row",
		},
		{
			`{"levelOrder": "finishFirst", "fairKey": "run", "discipline": "aging", "aging": {"interval": "1m", "maxLevel": 9}}`,
			"so what is said above of a message holds for its level.", "take turns, by weight",
		},
	} {
		got := strings.Join(parse(t, tt.policy).Consequences(0), "\n")
		if !strings.Contains(got, tt.want) || strings.Contains(got, tt.never) {
			t.Errorf("%s\ntext:\n%s\nwant: %s\nnever: %s", tt.policy, got, tt.want, tt.never)
		}
	}
	if got := Diff(parse(t, `{}`), parse(t, `{"levelOrder": "lifo"}`)); len(got) != 1 || got[0] != "the order inside a level changes from fifo to lifo." {
		t.Errorf("difference: %q", got)
	}
}
