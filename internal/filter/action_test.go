// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"errors"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/filter/value"
	"github.com/triagemq/triagemq/internal/message"
)

// show writes changes the way the tables below do.
func show(changes []Change) string {
	var parts []string
	for _, c := range changes {
		if c.Remove {
			parts = append(parts, "-"+c.Name.String())
		} else {
			parts = append(parts, c.Name.String()+"="+c.Value.String())
		}
	}
	return strings.Join(parts, " ")
}

func TestActions(t *testing.T) {
	for _, tt := range []struct{ sql, canonical, want string }{
		{"SET x = 1", "SET x = 1", "x=1"},
		{"set user.x='a' ;", "SET x = 'a'", "x='a'"},
		{"REMOVE n", "REMOVE n", "-n"},
		{"remove missing", "REMOVE missing", "-missing"},
		{"SET x = n + 1; SET y = x * 2; REMOVE x", "SET x = n + 1; SET y = x * 2; REMOVE x", "-x y=12"},
		{"SET x = 1; SET X = 2", "SET x = 1; SET X = 2", "X=2"},
		{"SET x = 1 SET y = x + 1 REMOVE n", "SET x = 1; SET y = x + 1; REMOVE n", "x=1 y=2 -n"},
		{"REMOVE n\nREMOVE d SET x = n;SET y = 2", "REMOVE n; REMOVE d; SET x = n; SET y = 2", "-n -d x=NULL y=2"},
		{"REMOVE n; SET y = n", "REMOVE n; SET y = n", "-n y=NULL"},
		{"SET [two words] = NULL", "SET [two words] = NULL", "[two words]=NULL"},
		{"SET x = missing", "SET x = missing", "x=NULL"},
		{"SET x = sys.MessageId", "SET x = sys.MessageId", "x='m-1'"},
		{"SET x = sys.To", "SET x = sys.To", "x=NULL"},
		{"SET x = n > 3 AND yes", "SET x = n > 3 AND yes", "x=TRUE"},
		{"SET sys.Label = 'new'; SET x = sys.Subject", "SET sys.Label = 'new'; SET x = sys.Label", "sys.Label='new' x='new'"},
		{"SET sys.Label = NULL; SET x = sys.Label", "SET sys.Label = NULL; SET x = sys.Label", "-sys.Label x=NULL"},
		{"REMOVE sys.Label", "REMOVE sys.Label", "-sys.Label"},
		{"SET sys.MessageId = newid()", "SET sys.MessageId = newid()", "sys.MessageId='00000000-0000-0000-0000-000000000001'"},
		{"SET sys.CorrelationId = 5", "SET sys.CorrelationId = 5", "sys.CorrelationId='5'"},
		{"SET sys.TimeToLive = @span", "SET sys.TimeToLive = @span", "sys.TimeToLive=PT1H"},
		{"SET sys.TimeToLive = 'PT5S'", "SET sys.TimeToLive = 'PT5S'", "sys.TimeToLive=PT5S"},
		{"SET sys.SessionId = Priority + '-' + sys.MessageId", "SET sys.SessionId = Priority + '-' + sys.MessageId", "sys.SessionId='High-m-1'"},
		{"SET sys.ContentType='a'; SET sys.To='b'; SET sys.ReplyTo='c'; SET sys.ReplyToSessionId='d'; SET sys.PartitionKey='e'",
			"SET sys.ContentType = 'a'; SET sys.To = 'b'; SET sys.ReplyTo = 'c'; SET sys.ReplyToSessionId = 'd'; SET sys.PartitionKey = 'e'",
			"sys.ContentType='a' sys.To='b' sys.ReplyTo='c' sys.ReplyToSessionId='d' sys.PartitionKey='e'"},
		// conversion to the type that the property has
		{"SET n = '17'", "SET n = '17'", "n=17"},
		{"SET n = 'many'", "SET n = 'many'", "n='many'"},
		{"SET n = 7.9", "SET n = 7.9", "n=7"},
		{"SET Priority = 3", "SET Priority = 3", "Priority='3'"},
		{"SET priority = 'Low'", "SET priority = 'Low'", "priority='Low'"},
		{"SET d = 3", "SET d = 3", "d=3.0"},
		{"SET yes = 'False'", "SET yes = 'False'", "yes=FALSE"},
		{"SET sent = '2030-01-31'", "SET sent = '2030-01-31'", "sent=2030-01-31T00:00:00Z"},
		{"SET took = 'PT1M'", "SET took = 'PT1M'", "took=PT1M"},
		{"SET nothing = 3", "SET nothing = 3", "nothing=3"},
	} {
		a, err := ParseAction(tt.sql, sampleParams)
		if err != nil {
			t.Errorf("ParseAction(%s): %v", tt.sql, err)
			continue
		}
		if got := a.String(); got != tt.canonical {
			t.Errorf("%s reads as %s, want %s", tt.sql, got, tt.canonical)
		}
		changes, err := a.Apply(sample())
		if got := show(changes); got != tt.want || err != nil {
			t.Errorf("%s changes %s, %v; want %s", tt.sql, got, err, tt.want)
		}
	}
}

func TestActionsKeepTheWidthOfNumbers(t *testing.T) {
	for _, tt := range []struct {
		sql  string
		want value.Width
	}{
		{"SET n = n + 1", value.Int32},
		{"SET n = n * 1000000000000", value.Widest}, // does not fit an int
		{"SET copy = n", value.Int32},
		{"SET copy = -n", value.Widest},
		{"SET fresh = 1", value.Widest},
		{"SET big = 1", value.Uint64},
		{"SET big = -1", value.Widest},
	} {
		a, err := ParseAction(tt.sql, nil)
		if err != nil {
			t.Fatal(err)
		}
		changes, err := a.Apply(sample())
		if err != nil {
			t.Fatal(err)
		}
		if got := changes[0].Value.Width(); got != tt.want {
			t.Errorf("%s: width %d, want %d", tt.sql, got, tt.want)
		}
	}
}

func TestActionSyntaxErrors(t *testing.T) {
	for _, tt := range []struct{ sql, pos, found, want string }{
		{"", "1:1", "the end of the text", "SET or REMOVE"},
		{"a = 1", "1:1", "name a", "SET or REMOVE"},
		{"SET 5 = 1", "1:5", "number 5", "the name of a property"},
		{"SET a 1", "1:7", "number 1", "'='"},
		{"SET a =", "1:8", "the end of the text", "a condition"},
		{"SET a = 1;; SET b = 2", "1:11", "';'", "SET or REMOVE"},
		{"REMOVE a b", "1:10", "name b", "SET, REMOVE, ';' or the end of the text"},
		{"SET a = 1 b", "1:11", "name b", "an operator, AND, OR or SET, REMOVE, ';' or the end of the text"},
		{"REMOVE", "1:7", "the end of the text", "the name of a property"},
		{"SET sys.SequenceNumber = 1", "1:5", "sys.SequenceNumber, which only the broker sets", "a property that a sender can set"},
		{"REMOVE sys.LockToken", "1:8", "sys.LockToken, which only the broker sets", "a property that a sender can set"},
		{"SET sys.Nope = 1", "1:9", "name Nope", "a system property, such as sys.Label or sys.MessageId"},
		{"SET sys.TimeToLive = 5", "1:22", "integer 5", "a duration for sys.TimeToLive"},
		{"SET sys.TimeToLive = 'soon'", "1:22", "string 'soon'", "a duration for sys.TimeToLive"},
		{"SET a = -'x'", "1:10", "string 'x'", "a number or a duration"},
		{strings.Repeat("REMOVE a;", 33), "1:289", "one more statement", "at most 32"},
	} {
		_, err := ParseAction(tt.sql, sampleParams)
		bad, ok := errors.AsType[*syntaxError](err)
		if !ok {
			t.Errorf("ParseAction(%s): %v, want a SyntaxError", tt.sql, err)
			continue
		}
		if bad.Pos.String() != tt.pos || bad.Found != tt.found || bad.Want != tt.want {
			t.Errorf("ParseAction(%s):\n got %v found %s, want %s\nwant %s found %s, want %s", tt.sql, bad.Pos, bad.Found, bad.Want, tt.pos, tt.found, tt.want)
		}
	}
	if _, err := ParseAction(strings.Repeat("REMOVE a;", 32), nil); err != nil {
		t.Errorf("32 statements: %v, want none", err)
	}
}

func TestFailedActionChangesNothing(t *testing.T) {
	for _, sql := range []string{
		"SET a = 1; SET b = n / 0",
		"SET a = 1; SET b = sys.LockToken",
		"SET a = 1; SET b = map",
		"SET a = 1; SET sys.TimeToLive = n",
	} {
		a, err := ParseAction(sql, nil)
		if err != nil {
			t.Fatal(err)
		}
		changes, err := a.Apply(sample())
		if !errors.Is(err, ErrEvaluation) || changes != nil {
			t.Errorf("%s: %v, %v; want no change and %v", sql, changes, err, ErrEvaluation)
		}
	}
}

// Number 6: what an action makes is bounded while it grows, value by value and all
// together.
func TestActionsMakeNothingLarge(t *testing.T) {
	label := strings.Repeat("x", 30<<10)
	d := message.Draft{Subject: label, To: strings.Repeat("y", 33<<10)}
	view := &Envelope{Message: d.Message()}
	for sql, want := range map[string]string{
		"SET a = sys.Label":                                                 "",
		"SET a = sys.Label; SET b = sys.Label":                              "",
		"SET a = sys.Label; SET a = sys.Label; SET a = sys.Label":           "", // the last one counts
		"SET a = sys.Label; SET b = sys.Label; REMOVE b; SET c = sys.Label": "",
		"SET a = sys.To":                                                    "32768",
		"SET a = sys.Label + sys.Label":                                     "32768",
		"SET a = sys.Label; SET b = a; SET c = b":                           "65536",
		"SET a = sys.Label; SET a = a + a; SET a = a + a":                   "32768",
		"SET sys.ReplyTo = sys.Label; SET a = sys.Label; SET b = sys.Label": "65536",
	} {
		a, err := ParseAction(sql, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Apply(view)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v, want nil", sql, err)
		case want != "" && (!errors.Is(err, ErrEvaluation) || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want an error about %s bytes", sql, err, want)
		}
	}
}
