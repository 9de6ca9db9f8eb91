// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/triagetest"
)

// terminal is a user at a terminal, with a broker of the test's own.
type terminal struct {
	t *testing.T
	*triagetest.Broker
}

func startCLI(t *testing.T, yaml string) terminal {
	t.Helper()
	b := triagetest.Start(t, yaml)
	t.Setenv(cli.ConnectionVariable, b.ConnectionString())
	return terminal{t, b}
}

// times are in most tables, and never the same. What takes their place is as wide.
var times = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}`)

// outcome is what came of a command: the code, what it printed and what it
// complained about, with times blanked out.
type outcome struct {
	code     int
	out, err string
}

func (c terminal) with(input string, args ...string) outcome {
	c.t.Helper()
	var out, err bytes.Buffer
	code := run(c.t.Context(), args, cli.Streams{In: strings.NewReader(input), Out: &out, Err: &err})
	blank := func(s string) string { return times.ReplaceAllString(s, "<a time, to the second>") }
	return outcome{code, blank(out.String()), blank(err.String())}
}

// do runs a command that must succeed and returns what it printed.
func (c terminal) do(args ...string) string {
	c.t.Helper()
	o := c.with("", args...)
	if o.code != 0 {
		c.t.Fatalf("%v: code %d: %s", args, o.code, o.err)
	}
	return o.out
}

// want runs a command that must succeed and print exactly this.
func (c terminal) want(want string, args ...string) {
	c.t.Helper()
	if got := c.do(args...); got != want {
		c.t.Errorf("%v\ngot\n%s\nwant\n%s", args, got, want)
	}
}

// fails runs a command that must end with the code and complain about it.
func (c terminal) fails(code int, complaint string, args ...string) {
	c.t.Helper()
	if o := c.with("", args...); o.code != code || !strings.Contains(o.err, complaint) {
		c.t.Errorf("%v: code %d, %q, want %d and %q", args, o.code, o.err, code, complaint)
	}
}

// file writes a file and returns its name.
func (c terminal) file(text string) string {
	c.t.Helper()
	name := filepath.Join(c.t.TempDir(), "f.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return name
}
