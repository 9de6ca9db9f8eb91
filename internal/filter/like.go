// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strings"
	"unicode/utf8"
)

// pattern is a LIKE pattern. Most patterns in use are a word with % at its ends;
// those are told apart once, when the expression is compiled.
type pattern struct {
	shape  shape
	word   string // the text without wildcards, unless shape is mixed
	text   string // as written
	escape rune   // or none
}

type shape uint8

const (
	mixed    shape = iota // wildcards anywhere: walk the text
	exact                 // word
	prefix                // word%
	suffix                // %word
	contains              // %word%
)

// none is no rune that a text can hold.
const none rune = -1

func oneRune(s string) bool { return s != "" && utf8.RuneCountInString(s) == 1 }

// escapeRune returns the escape character of an ESCAPE clause; empty is none.
func escapeRune(s string) rune {
	if s == "" {
		return none
	}
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// compilePattern sorts a pattern into its shape; ok is false when an escape
// character stands at its end, escaping nothing.
func compilePattern(text, escape string) (p pattern, ok bool) {
	p = pattern{text: text, escape: escapeRune(escape)}
	var word strings.Builder
	head, tail, plain := false, false, true
	for rest := text; rest != ""; {
		w, n, ok := nextWild(rest, p.escape)
		if !ok {
			return p, false
		}
		switch {
		case w == anyRun && word.Len() == 0:
			head = true
		case w == anyRun:
			tail = true
		case w == anyOne || tail: // something after the second %
			plain = false
		default:
			word.WriteString(literal(rest[:n]))
		}
		rest = rest[n:]
	}
	if !plain {
		return p, true
	}
	p.word = word.String()
	switch {
	case head && (tail || p.word == ""):
		p.shape = contains
	case head:
		p.shape = suffix
	case tail:
		p.shape = prefix
	default:
		p.shape = exact
	}
	return p, true
}

// wild is what one element of a pattern stands for.
type wild uint8

const (
	itself wild = iota
	anyOne
	anyRun
)

// nextWild reads the first element of a pattern, which is n bytes long. An
// escaped element is two characters, of which the second stands for itself.
func nextWild(s string, escape rune) (w wild, n int, ok bool) {
	r, n := utf8.DecodeRuneInString(s)
	switch r {
	case escape: // which may be one of the others
		if n == len(s) {
			return itself, n, false
		}
		_, m := utf8.DecodeRuneInString(s[n:])
		return itself, n + m, true
	case '%':
		return anyRun, n, true
	case '_':
		return anyOne, n, true
	default:
		return itself, n, true
	}
}

// literal returns the character that an element without wildcards stands for: the
// last one.
func literal(element string) string {
	_, n := utf8.DecodeLastRuneInString(element)
	return element[len(element)-n:]
}

// match reports whether the whole of s fits p.
func (p *pattern) match(s string) bool {
	switch p.shape {
	case exact:
		return s == p.word
	case prefix:
		return strings.HasPrefix(s, p.word)
	case suffix:
		return strings.HasSuffix(s, p.word)
	case contains:
		return strings.Contains(s, p.word)
	default:
		return walk(s, p.text, p.escape)
	}
}

// walk matches s against a pattern. It remembers the last % and, when it fails
// later, lets that % swallow one more character: an earlier % never needs to be
// tried again, so the work is at most len(s) times len(pattern).
func walk(s, pat string, escape rune) bool {
	star := false           // a % came by:
	resume, again := "", "" // what it has not swallowed, and the pattern after it
	for s != "" || pat != "" {
		if pat != "" {
			w, n, ok := nextWild(pat, escape)
			if !ok {
				return false
			}
			if w == anyRun {
				pat = pat[n:]
				star, resume, again = true, s, pat
				continue
			}
			if size := fitsOne(s, pat[:n], w); size > 0 {
				s, pat = s[size:], pat[n:]
				continue
			}
		}
		if !star || resume == "" {
			return false
		}
		_, n := utf8.DecodeRuneInString(resume)
		resume = resume[n:]
		s, pat = resume, again
	}
	return true
}

// fitsOne returns the size of the first character of s if the element stands for
// it, or 0.
func fitsOne(s, element string, w wild) int {
	if s == "" {
		return 0
	}
	_, size := utf8.DecodeRuneInString(s)
	if w == anyOne || s[:size] == literal(element) {
		return size
	}
	return 0
}
