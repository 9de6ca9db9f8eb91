// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Command is one command line. Its methods fail the test when an argument does
// not have the requested type.
type Command struct {
	Name  string
	Words []string          // the arguments without a key, in order
	Args  map[string]string // the ones with a key
	T     *testing.T
	Line  int // line number in the file
}

// Has reports whether key is present.
func (c Command) Has(key string) bool { _, ok := c.Args[key]; return ok }

// Text returns the value of key, or otherwise if it is absent.
func (c Command) Text(key, otherwise string) string {
	if v, ok := c.Args[key]; ok {
		return v
	}
	return otherwise
}

// Int returns the value of key, or otherwise if it is absent.
func (c Command) Int(key string, otherwise int) int {
	c.T.Helper()
	return value(c, key, otherwise, strconv.Atoi)
}

// Duration returns the value of key, or otherwise if it is absent.
func (c Command) Duration(key string, otherwise time.Duration) time.Duration {
	c.T.Helper()
	return value(c, key, otherwise, time.ParseDuration)
}

// Word returns the argument without a key at position i, counted from zero.
func (c Command) Word(i int) string {
	c.T.Helper()
	if i >= len(c.Words) {
		c.T.Fatalf("line %d: %s: argument %d is missing", c.Line, c.Name, i+1)
	}
	return c.Words[i]
}

// WordInt returns the argument without a key at position i as a number.
func (c Command) WordInt(i int) int {
	c.T.Helper()
	n, err := strconv.Atoi(c.Word(i))
	if err != nil {
		c.T.Fatalf("line %d: %s: argument %d: %v", c.Line, c.Name, i+1, err)
	}
	return n
}

func value[V any](c Command, key string, otherwise V, parse func(string) (V, error)) V {
	c.T.Helper()
	text, ok := c.Args[key]
	if !ok {
		return otherwise
	}
	v, err := parse(text)
	if err != nil {
		c.T.Fatalf("line %d: %s: %s: %v", c.Line, c.Name, key, err)
	}
	return v
}

// parseCommand reads a command line.
func parseCommand(line string) (Command, error) {
	c := Command{Args: map[string]string{}}
	for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimLeft(rest, " \t") {
		key, word, after, err := cutArgument(rest)
		if err != nil {
			return c, fmt.Errorf("%q: %w", line, err)
		}
		rest = after
		switch {
		case c.Name == "":
			c.Name = word
		case key == "":
			c.Words = append(c.Words, word)
		default:
			c.Args[key] = word
		}
	}
	return c, nil
}

// cutArgument takes a word, or key=value, off the front of s.
func cutArgument(s string) (key, word, rest string, err error) {
	end := strings.IndexAny(s, " \t\"=`")
	if end > 0 && s[end] == '=' {
		key, s = s[:end], s[end+1:]
	}
	if s != "" && (s[0] == '"' || s[0] == '`') {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", "", "", fmt.Errorf("unterminated quote: %w", err)
		}
		word, err = strconv.Unquote(quoted)
		return key, word, s[len(quoted):], err
	}
	if end = strings.IndexAny(s, " \t"); end < 0 {
		end = len(s)
	}
	return key, s[:end], s[end:], nil
}
