// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/triagemq/triagemq/internal/filter/value"
)

type tokenKind uint8

const (
	tokEnd       tokenKind = iota
	tokKeyword             // text in upper case
	tokName                // a regular name
	tokDelimited           // [name] or "name", unquoted in text
	tokString              // 'text', unquoted in text
	tokNumber              // its value is in val
	tokParam               // @name, without the @ in text
	tokSymbol              // operators and punctuation
)

// token is one token of the language. raw is its text.
type token struct {
	kind tokenKind
	pos  int
	text string
	raw  string
	val  value.Value
}

// keywords are reserved: a property of such a name is written [name].
var keywords = map[string]bool{
	"AND": true, "OR": true, "NOT": true, "IS": true, "NULL": true, "IN": true, "LIKE": true,
	"ESCAPE": true, "EXISTS": true, "TRUE": true, "FALSE": true, "SET": true, "REMOVE": true,
}

// describe names the token in an error message.
func (t token) describe() string {
	switch t.kind {
	case tokEnd:
		return "the end of the text"
	case tokKeyword:
		return "keyword " + t.text
	case tokName, tokDelimited:
		return "name " + shorten(t.raw)
	case tokString:
		return "string " + shorten(t.raw)
	case tokNumber:
		return "number " + shorten(t.raw)
	case tokParam:
		return "parameter " + shorten(t.raw)
	default:
		return "'" + t.raw + "'"
	}
}

// shorten keeps error messages readable when the text is not.
func shorten(s string) string {
	const limit = 40
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return firstRunes(s, limit) + "…"
}

// lexer cuts a text into tokens.
type lexer struct {
	text string
	at   int
}

// fail returns an error at offset pos.
func (l *lexer) fail(pos int, found, want string) *syntaxError {
	at, line := positionOf(l.text, pos)
	return &syntaxError{Pos: at, Found: found, Want: want, Text: line}
}

// next returns the next token, or the reason why there is none.
func (l *lexer) next() (token, *syntaxError) {
	rest := strings.TrimLeftFunc(l.text[l.at:], unicode.IsSpace)
	l.at = len(l.text) - len(rest)
	if rest == "" {
		return token{pos: l.at}, nil
	}
	r, _ := utf8.DecodeRuneInString(rest)
	switch {
	case (r == 'N' || r == 'n') && strings.HasPrefix(rest[1:], "'"):
		return l.quoted(tokString, 1, '\'')
	case isNameStart(r):
		return l.word(), nil
	case isDigit(r), r == '.' && len(rest) > 1 && isDigit(rune(rest[1])):
		return l.number()
	}
	switch r {
	case '\'':
		return l.quoted(tokString, 0, '\'')
	case '"':
		return l.quoted(tokDelimited, 0, '"')
	case '[':
		return l.quoted(tokDelimited, 0, ']')
	case '@':
		return l.param()
	}
	return l.symbol(r)
}

// take makes a token of the next n bytes.
func (l *lexer) take(kind tokenKind, n int) token {
	t := token{kind: kind, pos: l.at, raw: l.text[l.at : l.at+n]}
	t.text = t.raw
	l.at += n
	return t
}

func (l *lexer) word() token {
	t := l.take(tokName, nameLen(l.text[l.at:]))
	if upper := strings.ToUpper(t.text); keywords[upper] {
		t.kind, t.text = tokKeyword, upper
	}
	return t
}

func (l *lexer) param() (token, *syntaxError) {
	n := nameLen(l.text[l.at+1:])
	if n == 0 {
		return token{}, l.fail(l.at, "'@' alone", "the name of a parameter, such as @limit")
	}
	t := l.take(tokParam, 1+n)
	t.text = t.raw[1:]
	return t, nil
}

// quoted reads a string or delimited name whose opening mark is after skip
// bytes. A doubled closing mark is a literal mark.
func (l *lexer) quoted(kind tokenKind, skip int, end byte) (token, *syntaxError) {
	from := l.at + skip + 1
	for i := from; i < len(l.text); i++ {
		if l.text[i] != end {
			continue
		}
		if i+1 < len(l.text) && l.text[i+1] == end {
			i++
			continue
		}
		inner := l.text[from:i]
		t := l.take(kind, i+1-l.at)
		mark := string(end)
		t.text = strings.ReplaceAll(inner, mark+mark, mark)
		if kind == tokDelimited && t.text == "" {
			return token{}, l.fail(t.pos, "an empty name", "the name of a property")
		}
		return t, nil
	}
	what := "a string"
	if kind == tokDelimited {
		what = "a name"
	}
	return token{}, l.fail(l.at, what+" that does not end", "a closing "+string(end))
}

func (l *lexer) number() (token, *syntaxError) {
	rest := l.text[l.at:]
	n := digits(rest)
	whole := true
	if n < len(rest) && rest[n] == '.' && digits(rest[n+1:]) > 0 {
		n += 1 + digits(rest[n+1:])
		whole = false
	}
	if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
		sign := 0
		if n+1 < len(rest) && (rest[n+1] == '+' || rest[n+1] == '-') {
			sign = 1
		}
		if d := digits(rest[n+1+sign:]); d > 0 {
			n += 1 + sign + d
			whole = false
		}
	}
	if tail := nameLen(rest[n:]); tail > 0 {
		return token{}, l.fail(l.at, "'"+shorten(rest[:n+tail])+"'", "a number, or a name that begins with a letter")
	}
	t := l.take(tokNumber, n)
	if whole {
		u, err := strconv.ParseUint(t.raw, 10, 64)
		// One more than the largest integer is kept for a minus sign to use.
		if err != nil || u > math.MaxInt64+1 {
			return token{}, l.fail(t.pos, "number "+shorten(t.raw), "an integer of 64 bits")
		}
		t.val = value.MakeUint(u)
		return t, nil
	}
	f, err := strconv.ParseFloat(t.raw, 64)
	if err != nil {
		return token{}, l.fail(t.pos, "number "+shorten(t.raw), "a number in the range of a double")
	}
	t.val = value.MakeDouble(f)
	return t, nil
}

func (l *lexer) symbol(r rune) (token, *syntaxError) {
	rest := l.text[l.at:]
	for _, two := range [...]string{"<>", "!=", "<=", ">="} {
		if strings.HasPrefix(rest, two) {
			return l.take(tokSymbol, 2), nil
		}
	}
	if strings.ContainsRune("=<>+-*/%(),.;", r) {
		return l.take(tokSymbol, 1), nil
	}
	want := "a name, a value or an operator"
	if r == '!' {
		want = "!= or NOT"
	}
	return token{}, l.fail(l.at, strconv.QuoteRune(r), want)
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// isNameStart allows a leading underscore, which Service Bus does not, because
// nothing else could be meant by it.
func isNameStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }

// nameLen returns how many bytes at the front of s belong to a regular name,
// without checking its first character.
func nameLen(s string) int {
	end := strings.IndexFunc(s, func(r rune) bool { return !isNameStart(r) && !unicode.IsDigit(r) })
	if end < 0 {
		return len(s)
	}
	return end
}

func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(rune(s[n])) {
		n++
	}
	return n
}

// isPlainName reports whether s needs no delimiters.
func isPlainName(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && isNameStart(r) && nameLen(s) == len(s) && !keywords[strings.ToUpper(s)]
}
