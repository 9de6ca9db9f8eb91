// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// sample knows a few commands.
func sample(*testing.T) func(Command) string {
	return func(c Command) string {
		switch c.Name {
		case "echo":
			out := []string{strings.Join(c.Words, "|")}
			for _, key := range slices.Sorted(maps.Keys(c.Args)) {
				out = append(out, key+"="+c.Args[key])
			}
			return strings.Join(out, " ")
		case "lines":
			return "first\n\nlast\n"
		}
		return ""
	}
}

func TestTranscriptThatIsStillRight(t *testing.T) { Run(t, "testdata/*.txt", sample) }

func TestOutputIsReplacedAndTheRestKept(t *testing.T) {
	const old = "# why\necho a\n----\nwrong\nmore\n\necho b\n----\n\n\necho c\n----\nwrong"
	const want = "# why\necho a\n----\na\n\necho b\n----\nb\n\n\necho c\n----\nc\n"
	if got := play(t, old, sample(t)); got != want {
		t.Errorf("played as\n%s\nwant\n%s", got, want)
	}
}

func TestDifferenceNamesTheLine(t *testing.T) {
	got := difference("a\nb\nc", "a\nx\nc")
	if want := "line 2:\ngot\n    x\n    c\nwant\n    b\n    c\n"; !strings.HasPrefix(got, want) {
		t.Errorf("difference is\n%s\nwant it to begin with\n%s", got, want)
	}
	if got := difference("a\nb", "a"); !strings.Contains(got, "(end of file)") {
		t.Errorf("difference is\n%s\nwant it to show where the file ends", got)
	}
}

func TestCommandArguments(t *testing.T) {
	c, err := parseCommand(`send "a \"b\"" level=9 body="x y" wait=1m empty= raw=` + "`c:\\d`" + ` last`)
	if err != nil {
		t.Fatal(err)
	}
	c.T = t
	got := fmt.Sprint(c.Name, c.Words, c.Int("level", 0), c.Int("other", 7), c.Text("body", ""), c.Text("other", "none"),
		c.Duration("wait", 0), c.Has("empty"), c.Has("missing"), c.Text("raw", ""), c.Word(1))
	want := fmt.Sprint("send", []string{`a "b"`, "last"}, 9, 7, "x y", "none", time.Minute, true, false, `c:\d`, "last")
	if got != want {
		t.Errorf("read as\n%s, want\n%s", got, want)
	}
}

func TestUnterminatedQuoteIsRefused(t *testing.T) {
	if c, err := parseCommand(`send "abc`); err == nil {
		t.Errorf("read as %+v, want an error", c)
	}
}
