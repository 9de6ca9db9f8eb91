// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestCanonicalForm covers each rule of the grammar: the text on the left is
// accepted and understood as the text on the right.
func TestCanonicalForm(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		// names and scopes
		{"MessageID=rule1", "MessageID = rule1"},
		{"a = user.b", "a = b"},
		{"SYS.label = 'x'", "sys.Label = 'x'"},
		{"sys.Subject = 'x'", "sys.Label = 'x'"},
		{"[sys].[messageid] = 'x'", "sys.MessageId = 'x'"},
		{"sys = 1", "sys = 1"},
		{"[two words] = 1", "[two words] = 1"},
		{`"two words" = 1`, "[two words] = 1"},
		{"[a]]b] = 1", "[a]]b] = 1"},
		{`"a""b" = 1`, `[a"b] = 1`},
		{"[plain] = 1", "plain = 1"},
		{"[and] = 1", "[and] = 1"},
		{"user.set = 1", "[set] = 1"},
		{"größe > 1", "größe > 1"},
		{"_x = 1", "_x = 1"},
		// constants
		{"a = 'it''s'", "a = 'it''s'"},
		{"a = N'größe'", "a = 'größe'"},
		{"a = n'x'", "a = 'x'"},
		{"N = 'x'", "N = 'x'"},
		{"a = ''", "a = ''"},
		{"a = 1.50", "a = 1.5"},
		{"a = 2.0", "a = 2.0"},
		{"a = .5", "a = 0.5"},
		{"a = 1E3", "a = 1000.0"},
		{"a = 1.5e-7", "a = 1.5e-07"},
		{"a = 1e+300", "a = 1e+300"},
		{"a = 007", "a = 7"},
		{"a = -5", "a = -5"},
		{"a = - 5", "a = -5"},
		{"a = -(-5)", "a = --5"},
		{"a = -(-0)", "a = --0"},
		{"a = -9223372036854775808", "a = -9223372036854775808"},
		{"a = 9223372036854775807", "a = 9223372036854775807"},
		{"a = true or b = False", "a = TRUE OR b = FALSE"},
		{"a = null", "a = NULL"},
		{"a = @LIMIT", "a = @LIMIT"},
		// comparison
		{"a != 1", "a <> 1"},
		{"a<1 and a<=1 and a>1 and a>=1 and a<>1", "a < 1 AND a <= 1 AND a > 1 AND a >= 1 AND a <> 1"},
		{"(a = 1) = (b = 2)", "(a = 1) = (b = 2)"},
		// logic and precedence
		{"a = 1 or b = 2 and c = 3", "a = 1 OR b = 2 AND c = 3"},
		{"(a = 1 or b = 2) and c = 3", "(a = 1 OR b = 2) AND c = 3"},
		{"a = 1 and (b = 2 and (c = 3))", "a = 1 AND b = 2 AND c = 3"},
		{"not a = 1 and b = 2", "NOT a = 1 AND b = 2"},
		{"not (a = 1 and b = 2)", "NOT (a = 1 AND b = 2)"},
		{"not not a", "NOT NOT a"},
		{"flag", "flag"},
		{"((flag))", "flag"},
		// tests
		{"a is null", "a IS NULL"},
		{"a is not null", "a IS NOT NULL"},
		{"sys.label is null", "sys.Label IS NULL"},
		{"a in (1,2 , 'x', b)", "a IN (1, 2, 'x', b)"},
		{"a not in (1)", "a NOT IN (1)"},
		{"not a in (1)", "NOT a IN (1)"},
		{"a + 1 in (1)", "a + 1 IN (1)"},
		{"a like 'x%'", "a LIKE 'x%'"},
		{"a not like 'x!%' escape '!'", "a NOT LIKE 'x!%' ESCAPE '!'"},
		{"a like b + '%'", "a LIKE b + '%'"},
		{"exists(a)", "EXISTS(a)"},
		{"not exists ( sys.label )", "NOT EXISTS(sys.Label)"},
		{"EXISTS(p('a'))", "EXISTS(property('a'))"},
		// arithmetic
		{"a+b*c-d/e%f = 1", "a + b * c - d / e % f = 1"},
		{"(a+b)*c = 1", "(a + b) * c = 1"},
		{"a-(b-c) = 1", "a - (b - c) = 1"},
		{"a-b-c = 1", "a - b - c = 1"},
		{"a*(b*c) = 1", "a * (b * c) = 1"},
		{"-a*-b = +c", "-a * -b = +c"},
		{"-(a*b) = 1", "-(a * b) = 1"},
		{"a -5 = 1", "a - 5 = 1"},
		// functions
		{"NewID() = a", "newid() = a"},
		{"P('a') = 1", "property('a') = 1"},
		{"property('a' + b) = 1", "property('a' + b) = 1"},
		{"p = 1 and property = 2 and newid = 3", "p = 1 AND property = 2 AND newid = 3"},
		// space
		{"\n a\t=\r\n1 ", "a = 1"},
	} {
		x, err := Parse(tt.in, sampleParams)
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.in, err)
			continue
		}
		if got := x.String(); got != tt.want {
			t.Errorf("Parse(%q) is %s, want %s", tt.in, got, tt.want)
		}
		if again, err := Parse(tt.want, sampleParams); err != nil || again.String() != tt.want {
			t.Errorf("Parse(%q) again: %v, %v", tt.want, again, err)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, tt := range []struct{ in, pos, found, want string }{
		{"", "1:1", "the end of the text", "a condition"},
		{"a =", "1:4", "the end of the text", "a value"},
		{"a = 1 b", "1:7", "name b", "AND, OR or the end of the text"},
		{"a 1", "1:3", "number 1", "an operator, AND, OR or the end of the text"},
		{"a = 1 = 2", "1:7", "'='", "AND, OR or the end of the text"},
		{"a = 1 AND", "1:10", "the end of the text", "a condition"},
		{"a = 1 AND OR", "1:11", "keyword OR", "a condition"},
		{"(a = 1", "1:7", "the end of the text", "AND, OR or ')'"},
		{"a = 1)", "1:6", "')'", "AND, OR or the end of the text"},
		{"a IS 5", "1:6", "number 5", "NULL or NOT NULL"},
		{"a IS NOT 5", "1:10", "number 5", "NULL"},
		{"a IN 5", "1:6", "number 5", "'(' and a list of values"},
		{"a IN ()", "1:7", "')'", "a value"},
		{"a IN (1 2)", "1:9", "number 2", "',' or ')'"},
		{"a NOT = 1", "1:7", "'='", "IN or LIKE"},
		{"a = NOT b", "1:5", "keyword NOT", "a value"},
		{"a LIKE", "1:7", "the end of the text", "a value"},
		{"a LIKE 5", "1:8", "integer 5", "a string"},
		{"a LIKE 'x' ESCAPE 'xy'", "1:19", "string 'xy'", "a string of one character"},
		{"a LIKE 'x' ESCAPE ''", "1:19", "string ''", "a string of one character"},
		{"a LIKE 'x!' ESCAPE '!'", "1:8", "string 'x!'", "a pattern that does not end in its escape character"},
		{"EXISTS a", "1:8", "name a", "'(' and a property"},
		{"EXISTS(5)", "1:8", "number 5", "the name of a property"},
		{"EXISTS(newid())", "1:8", "newid()", "the name of a property"},
		{"sys.Nope = 1", "1:5", "name Nope", "a system property, such as sys.Label or sys.MessageId"},
		{"p('sys.Nope') = 1", "1:3", "string 'sys.Nope'", "a system property, such as 'sys.Label'"},
		{"other.name = 1", "1:1", "name other before a dot", "sys or user; a name with a dot in it is written [other.name]"},
		{"sys. = 1", "1:6", "'='", "the name of a property"},
		{"upper(a) = 1", "1:1", "function upper", "newid(), property(name) or p(name)"},
		{"newid(1) = 1", "1:7", "number 1", "')'"},
		{"p(5) = 1", "1:3", "integer 5", "a string"},
		{"a = @nope", "1:5", "parameter @nope", "a parameter with a value"},
		{"a = @", "1:5", "'@' alone", "the name of a parameter, such as @limit"},
		{"a = 'x", "1:5", "a string that does not end", "a closing '"},
		{"[a = 1", "1:1", "a name that does not end", "a closing ]"},
		{"[] = 1", "1:1", "an empty name", "the name of a property"},
		{"a = 12ab", "1:5", "'12ab'", "a number, or a name that begins with a letter"},
		{"a = 9223372036854775808", "1:5", "number 9223372036854775808", "an integer of 64 bits"},
		{"a = 99999999999999999999", "1:5", "number 99999999999999999999", "an integer of 64 bits"},
		{"a = 1e999", "1:5", "number 1e999", "a number in the range of a double"},
		{"a ! 1", "1:3", "'!'", "!= or NOT"},
		{"a = #", "1:5", "'#'", "a name, a value or an operator"},
		{"a = 1;", "1:6", "';'", "AND, OR or the end of the text"},
		{"a = \xff", "1:5", "a byte that is not UTF-8", "text in UTF-8"},
		{"a = 1\n  AND größe = ,", "2:15", "','", "a value"},
		// types
		{"5", "1:1", "integer 5", "a condition"},
		{"'a' AND b = 1", "1:1", "string 'a'", "a condition"},
		{"NOT 5", "1:5", "integer 5", "a condition"},
		{"a = 1 AND newid()", "1:11", "newid()", "a condition"},
		{"a - 'x' = 1", "1:5", "string 'x'", "a number, a dateTime or a duration"},
		{"a + TRUE = 1", "1:5", "boolean TRUE", "a number, a string, a dateTime or a duration"},
		{"a * (b = 1) = 1", "1:6", "condition b = 1", "a number or a duration"},
		{"-'x' = 1", "1:2", "string 'x'", "a number or a duration"},
	} {
		_, err := Parse(tt.in, sampleParams)
		bad, ok := errors.AsType[*syntaxError](err)
		if !ok || !errors.Is(err, ErrSyntax) {
			t.Errorf("Parse(%q): %v, want a SyntaxError", tt.in, err)
			continue
		}
		if bad.Pos.String() != tt.pos || bad.Found != tt.found || bad.Want != tt.want {
			t.Errorf("Parse(%q):\n got %v found %s, want %s\nwant %s found %s, want %s", tt.in, bad.Pos, bad.Found, bad.Want, tt.pos, tt.found, tt.want)
		}
	}
}

func TestErrorTextAndCaret(t *testing.T) {
	_, err := Parse("a = 1\n\tAND b ==", nil)
	bad, ok := errors.AsType[*syntaxError](err)
	if !ok {
		t.Fatalf("Parse: %v, want a SyntaxError", err)
	}
	if got, want := err.Error(), "filter: 2:9: found '=', expected a value"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if got, want := bad.Caret(), "\tAND b ==\n\t       ^"; got != want {
		t.Errorf("Caret() =\n%s\nwant\n%s", got, want)
	}
	_, err = Parse(strings.Repeat("a = 1 OR ", 200)+"#", nil)
	bad, _ = errors.AsType[*syntaxError](err)
	line, mark, _ := strings.Cut(bad.Caret(), "\n")
	if len(line) != caretWidth || line[len(mark)-1] != '#' {
		t.Errorf("Caret() of a long line =\n%s", bad.Caret())
	}
}

func TestLimits(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("(", n) + "a" + strings.Repeat(")", n) }
	for _, tt := range []struct {
		name   string
		limits parseLimits
		sql    string
		ok     bool
	}{
		{"exact length", parseLimits{Length: 5}, "a = 1", true},
		{"too long", parseLimits{Length: 5}, "a = 12", false},
		{"64 KiB", parseLimits{}, "a = '" + strings.Repeat("x", 64<<10-6) + "'", true},
		{"beyond 64 KiB", parseLimits{}, "a = '" + strings.Repeat("x", 64<<10-5) + "'", false},
		{"parentheses", parseLimits{}, deep(199), true},
		{"too many parentheses", parseLimits{}, deep(200), false},
		{"NOT", parseLimits{}, strings.Repeat("NOT ", 300) + "a", false},
		{"minus", parseLimits{}, strings.Repeat("-", 300) + "a = 1", false},
		{"a long sum is deep", parseLimits{}, strings.Repeat("a+", 300) + "a = 1", false},
		{"a long OR is not", parseLimits{}, strings.Repeat("a=1 OR ", 5000) + "a=1", true},
		{"functions", parseLimits{}, strings.Repeat("p(", 300) + "'a'" + strings.Repeat(")", 300), false},
		{"own depth", parseLimits{Depth: 3}, "((a))", true},
		{"own depth passed", parseLimits{Depth: 3}, "(((a)))", false},
	} {
		if _, err := tt.limits.Parse(tt.sql, nil); (err == nil) != tt.ok {
			t.Errorf("%s: %v, want accepted: %v", tt.name, err, tt.ok)
		}
	}
}

func TestNamesListsPropertiesOnce(t *testing.T) {
	x := parse(t, "a = 1 AND sys.Label LIKE b AND a > 2 AND EXISTS([two words]) AND p('c') = sys.subject")
	var got []string
	for _, n := range x.Names() {
		got = append(got, n.String())
	}
	if want := []string{"a", "sys.Label", "b", "[two words]", "c"}; !slices.Equal(got, want) {
		t.Errorf("Names() = %v, want %v", got, want)
	}
}
