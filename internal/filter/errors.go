// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Errors of parsing and of evaluation. The types below unwrap to them.
var (
	// ErrSyntax is what every [*syntaxError] unwraps to.
	ErrSyntax = errors.New("filter: syntax error")
	// ErrEvaluation is what every [*evalError] unwraps to. The message that
	// caused it is not matched; subscriptions may dead-letter it.
	ErrEvaluation = errors.New("filter: evaluation failed")
	// ErrNoCondition is returned for a correlation filter without any field.
	ErrNoCondition = errors.New("filter: a correlation filter needs at least one field or property")
)

// position is a position in the text of an expression.
type position struct {
	Offset int // in bytes, from 0
	Line   int // from 1
	Col    int // in characters, from 1
}

// String returns line:column.
func (p position) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Col) }

// syntaxError says where an expression is wrong.
type syntaxError struct {
	Pos   position
	Found string // what is at Pos: "')'", "end of text", "number 5"
	Want  string // what would have been right there
	Text  string // the line of the expression with Pos
}

// Error is one line; [syntaxError.Caret] marks the position.
func (e *syntaxError) Error() string {
	return fmt.Sprintf("filter: %v: found %s, expected %s", e.Pos, e.Found, e.Want)
}

// Unwrap makes errors.Is(err, ErrSyntax) true.
func (e *syntaxError) Unwrap() error { return ErrSyntax }

// Caret returns the faulty line and, below it, a mark under the faulty
// position.
func (e *syntaxError) Caret() string {
	line, col := e.Text, e.Pos.Col
	if r := []rune(line); len(r) > caretWidth {
		from := max(0, min(col-caretWidth/2, len(r)-caretWidth))
		line, col = string(r[from:from+caretWidth]), col-from
	}
	// Tabs are kept in the padding, so that the mark is below its position.
	pad := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, firstRunes(line, col-1))
	return line + "\n" + pad + "^"
}

// caretWidth is how much of a long line Caret shows.
const caretWidth = 100

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// evalError says why an expression has no value for a message. It has no text until somebody
// asks for one: thousands of rules may fail for a message.
type evalError struct {
	set    string       // what is before the part, of an action
	part   fmt.Stringer // that failed: its text is in canonical form
	Reason string
}

// Error returns the part of the expression and the reason.
func (e *evalError) Error() string {
	return fmt.Sprintf("filter: cannot evaluate %s: %s", e.expr(), e.Reason)
}

// expr returns the part that failed.
func (e *evalError) expr() string { return e.set + shorten(e.part.String()) }

// Unwrap makes errors.Is(err, ErrEvaluation) true.
func (e *evalError) Unwrap() error { return ErrEvaluation }

// positionOf finds line, column and line text of an offset.
func positionOf(text string, offset int) (position, string) {
	offset = min(offset, len(text))
	start := strings.LastIndexByte(text[:offset], '\n') + 1
	line, _, _ := strings.Cut(text[start:], "\n")
	return position{
		Offset: offset,
		Line:   strings.Count(text[:offset], "\n") + 1,
		Col:    utf8.RuneCountInString(text[start:offset]) + 1,
	}, strings.TrimSuffix(line, "\r")
}
