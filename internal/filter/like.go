// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strings"
	"unicode/utf8"
)

// pattern is a LIKE pattern that is known before any message. Most patterns in
// use are a word with % at its ends; those are recognised once, when the
// expression is compiled. The others are split at their %.
type pattern struct {
	shape  shape
	word   string  // the text without wildcards, unless shape is mixed
	pieces []piece // of the shape mixed
}

type shape uint8

const (
	mixed    shape = iota // wildcards anywhere: search for the pieces
	exact                 // word
	prefix                // word%
	suffix                // %word
	contains              // %word%
)

// none is not a valid rune.
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

// compilePattern sorts a pattern into its shape; ok is false when it ends with
// an escape character, which escapes nothing.
func compilePattern(text, escape string) (p pattern, ok bool) {
	esc := escapeRune(escape)
	var word strings.Builder
	head, tail, plain := false, false, true
	for rest := text; rest != ""; {
		w, n, ok := nextWild(rest, esc)
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
		p.pieces = cut(text, esc)
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

// wild is what one element of a pattern matches.
type wild uint8

const (
	itself wild = iota
	anyOne
	anyRun
)

// nextWild reads the first element of a pattern, which is n bytes long. An
// escaped element is two characters; it matches the second one literally.
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

// literal returns the character that an element without wildcards matches: the
// last one.
func literal(element string) string {
	_, n := utf8.DecodeLastRuneInString(element)
	return element[len(element)-n:]
}

// piece is the part of a pattern between two %, before the first or after the last.
type piece struct {
	text   string
	coded  bool // text is as written, with _ and escapes; else it is literal
	last   bool // no % follows
	escape rune // of a coded text
}

// pieces yields the pieces of a pattern in turn: those of a compiled one, or
// those of a text that is split during the match, which needs no memory.
type pieces struct {
	compiled []piece
	text     string
	escape   rune
}

// next returns the next piece. There is one more than there are %, so that the
// caller stops after the last.
func (ps *pieces) next() piece {
	if ps.compiled != nil {
		p := ps.compiled[0]
		ps.compiled = ps.compiled[1:]
		return p
	}
	p := piece{escape: ps.escape}
	for at := 0; at < len(ps.text); {
		w, n, _ := nextWild(ps.text[at:], ps.escape)
		if w == anyRun {
			p.text, ps.text = ps.text[:at], ps.text[at+n:]
			return p
		}
		_, size := utf8.DecodeRuneInString(ps.text[at:])
		p.coded = p.coded || w == anyOne || n > size
		at += n
	}
	p.text, ps.text, p.last = ps.text, "", true
	return p
}

// cut returns all pieces of a pattern, with escapes resolved where there is no _.
func cut(text string, escape rune) (all []piece) {
	for ps := (pieces{text: text, escape: escape}); ; {
		p := ps.next()
		if p.coded {
			p.resolve()
		}
		all = append(all, p)
		if p.last {
			return all
		}
	}
}

// resolve makes a coded text literal, unless there is a _ in it.
func (p *piece) resolve() {
	var word strings.Builder
	for rest := p.text; rest != ""; {
		w, n, _ := nextWild(rest, p.escape)
		if w == anyOne {
			return
		}
		word.WriteString(literal(rest[:n]))
		rest = rest[n:]
	}
	p.text, p.coded = word.String(), false
}

// endsInEscape reports whether the last character of a pattern escapes nothing.
func endsInEscape(text string, escape rune) bool {
	for text != "" {
		_, n, ok := nextWild(text, escape)
		if !ok {
			return true
		}
		text = text[n:]
	}
	return false
}

// match reports whether the whole of s fits p.
func (e *env) match(s string, p *pattern) bool {
	switch p.shape {
	case exact:
		return s == p.word
	case prefix:
		return strings.HasPrefix(s, p.word)
	case suffix:
		return strings.HasSuffix(s, p.word)
	case contains:
		if len(s) <= shortText {
			return strings.Contains(s, p.word)
		}
		return e.index(s, p.word) >= 0
	default:
		return e.like(s, pieces{compiled: p.pieces})
	}
}

// like reports whether s is the pieces with anything in between: it begins with
// the first and ends with the last, and the others follow each other. Using the
// first match of a piece is always right: a piece matches the same number of
// characters everywhere, so a later match leaves less text for the rest. So no
// character of s is compared with two pieces, and the work is linear.
//
//	s       the quick brown fox
//	pattern the%ck%b___n%x
//	        [-]   ][[---]  ]
func (e *env) like(s string, ps pieces) bool {
	p := ps.next()
	n := e.fit(s, &p)
	if n < 0 {
		return false
	}
	for s = s[n:]; !p.last; s = s[n:] {
		if p = ps.next(); p.last {
			return e.ends(s, &p)
		}
		if n = e.find(s, &p); n < 0 {
			return false
		}
	}
	return s == ""
}

// fit returns how many bytes at the beginning of s a piece matches, or -1.
func (e *env) fit(s string, p *piece) int {
	if !p.coded {
		if !e.spend(len(p.text)/bytesPerStep+1) || !strings.HasPrefix(s, p.text) {
			return -1
		}
		return len(p.text)
	}
	from := len(s)
	for rest := p.text; rest != ""; {
		w, n, _ := nextWild(rest, p.escape)
		if !e.spend(1) || s == "" {
			return -1
		}
		_, size := utf8.DecodeRuneInString(s)
		if w != anyOne && s[:size] != literal(rest[:n]) {
			return -1
		}
		s, rest = s[size:], rest[n:]
	}
	return from - len(s)
}

// find returns the end of the first match of a piece in s, or -1. A piece with
// _ is tried at every character, so the work may be text times piece; all
// others are a plain substring search.
func (e *env) find(s string, p *piece) int {
	if !p.coded {
		if at := e.index(s, p.text); at >= 0 {
			return at + len(p.text)
		}
		return -1
	}
	for at := 0; ; {
		if n := e.fit(s[at:], p); n >= 0 {
			return at + n
		}
		if at == len(s) || e.steps < 0 {
			return -1
		}
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
}

// ends reports whether s ends with a match of a piece.
func (e *env) ends(s string, p *piece) bool {
	if !p.coded {
		return e.spend(len(p.text)/bytesPerStep+1) && strings.HasSuffix(s, p.text)
	}
	at := len(s)
	for rest := p.text; rest != ""; {
		_, n, _ := nextWild(rest, p.escape)
		if !e.spend(1) || at == 0 {
			return false
		}
		_, size := utf8.DecodeLastRuneInString(s[:at])
		rest, at = rest[n:], at-size
	}
	return at+e.fit(s[at:], p) == len(s)
}

// index is strings.Index within the steps that are left.
func (e *env) index(s, word string) int {
	if most := max(e.steps, 0); len(s)/bytesPerStep > most {
		s = s[:most*bytesPerStep] // if that does not decide, spend below says so
	}
	at := strings.Index(s, word)
	if at < 0 {
		e.spend(len(s)/bytesPerStep + 1)
	} else {
		e.spend((at+len(word))/bytesPerStep + 1)
	}
	return at
}
