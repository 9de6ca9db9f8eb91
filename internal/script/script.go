// SPDX-License-Identifier: Apache-2.0

package script

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// update is a flag of the test binary. The standard library allows only a
// package variable here.
var update = flag.Bool("update", false, "rewrite the output of transcripts")

const separator = "----"

// Run plays every file that matches pattern, which is usually testdata/*.txt, as
// a subtest. For each it calls start, and the function start returns for each
// command; what that returns is the command's output.
func Run(t *testing.T, pattern string, start func(t *testing.T) func(Command) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no transcript matches %s", pattern)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			played := play(t, string(text), start(t))
			switch {
			case played == string(text):
			case *update:
				if err := os.WriteFile(file, []byte(played), 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("%s: %s", file, difference(string(text), played))
			}
		})
	}
}

// play runs the commands of a transcript and returns it with what they print
// now. Everything above the dashes stays as it was written.
func play(t *testing.T, text string, run func(Command) string) string {
	t.Helper()
	var played, output strings.Builder
	below := false // the dashes of the current block
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.TrimSpace(line) == "": // ends the block
			below = false
			output.Reset()
			played.WriteString("\n")
		case below: // old output, replaced by what is in played already
		case line == separator:
			below = true
			played.WriteString(separator + "\n" + output.String())
		case strings.HasPrefix(line, "#"):
			played.WriteString(line + "\n")
		default:
			played.WriteString(line + "\n")
			output.WriteString(visible(runLine(t, number, line, run)))
		}
	}
	return played.String()
}

func runLine(t *testing.T, number int, line string, run func(Command) string) string {
	t.Helper()
	c, err := parseCommand(line)
	if err != nil {
		t.Fatalf("line %d: %v", number, err)
	}
	c.T, c.Line = t, number
	return run(c)
}

// visible ends output with a newline and shows its empty lines as dots.
func visible(output string) string {
	var b strings.Builder
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, " \r\n")
		if line == "" {
			line = "."
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// difference describes where two transcripts differ.
func difference(want, got string) string {
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	n := 0
	for n < len(wants) && n < len(gots) && wants[n] == gots[n] {
		n++
	}
	return fmt.Sprintf("line %d:\ngot\n%s\nwant\n%s\n(-update rewrites the file)", n+1, excerpt(gots, n), excerpt(wants, n))
}

// excerpt returns a few lines from n on.
func excerpt(lines []string, n int) string {
	if n >= len(lines) {
		return "    (end of file)"
	}
	return "    " + strings.Join(lines[n:min(n+5, len(lines))], "\n    ")
}
