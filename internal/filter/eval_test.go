// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"errors"
	"testing"

	"github.com/triagemq/triagemq/internal/filter/value"
)

// TestConditions covers each rule of the semantics against the sample message:
// t is true, f false and u unknown.
func TestConditions(t *testing.T) {
	for _, tt := range []struct {
		sql  string
		want string
	}{
		// equality by type and value
		{"Priority = 'High'", "t"}, {"Priority = 'high'", "f"}, {"Priority <> 'Low'", "t"}, {"priority = 'High'", "t"},
		{"n = 5", "t"}, {"n = 5.0", "t"}, {"n = 5.5", "f"}, {"d = 2.5", "t"}, {"n = d", "f"}, {"n > d", "t"}, {"d < n", "t"},
		{"yes = TRUE", "t"}, {"yes = no", "f"}, {"yes <> no", "t"}, {"yes > no", "f"},
		{"name = 'O''Neil'", "t"}, {"empty = ''", "t"}, {"größe = 6", "t"},
		{"big > 9223372036854775807", "t"}, {"minus < big", "t"}, {"big = big", "t"}, {"big > 1e19", "f"}, {"big < 1e20", "t"},
		{"9007199254740993 = 9007199254740992.0", "f"}, {"9007199254740992 = 9007199254740992.0", "t"},
		{"id = id", "t"}, {"id <> newid()", "t"}, {"bytes = bytes", "t"}, {"map = map", "u"},
		// order
		{"Priority < 'Low'", "t"}, {"Priority >= 'High'", "t"}, {"'a' < 'B'", "f"},
		{"n <= 5", "t"}, {"n < 5", "f"}, {"minus >= -7", "t"}, {"sent < due", "t"}, {"sent = @when", "t"}, {"took > @span", "f"},
		// unlike types
		{"n = '5'", "u"}, {"n <> '5'", "u"}, {"'5' = 5", "u"}, {"yes = 'true'", "u"}, {"yes = 1", "u"}, {"sent = 'x'", "u"}, {"sent > took", "u"},
		// unknown
		{"missing = 1", "u"}, {"missing <> 1", "u"}, {"missing = missing", "u"}, {"nothing = NULL", "u"}, {"nothing = nothing", "u"},
		{"NULL = NULL", "u"}, {"missing + 1 = 1", "u"}, {"missing LIKE 'x'", "u"}, {"missing NOT LIKE 'x'", "u"},
		{"missing IN (1)", "u"}, {"missing NOT IN (1)", "u"}, {"missing", "u"}, {"n", "u"}, {"sys.To = 'x'", "u"}, {"@none = 1", "u"},
		// three-valued logic
		{"yes AND yes", "t"}, {"yes AND no", "f"}, {"yes AND missing", "u"}, {"no AND missing", "f"}, {"missing AND no", "f"},
		{"missing AND missing", "u"}, {"yes OR missing", "t"}, {"missing OR yes", "t"}, {"no OR missing", "u"}, {"no OR no", "f"},
		{"NOT yes", "f"}, {"NOT no", "t"}, {"NOT missing", "u"}, {"NOT (no AND missing)", "t"}, {"NOT missing = 1", "u"},
		{"no OR no OR yes AND no OR yes", "t"}, {"yes", "t"}, {"no", "f"}, {"TRUE", "t"}, {"1=1", "t"}, {"1=0", "f"}, {"NULL", "u"},
		{"(n = 5) = TRUE", "t"}, {"(n = 5) = (d = 2)", "f"}, {"(missing = 5) = TRUE", "u"},
		// null and existence
		{"missing IS NULL", "t"}, {"nothing IS NULL", "t"}, {"n IS NULL", "f"}, {"n IS NOT NULL", "t"}, {"missing IS NOT NULL", "f"},
		{"EXISTS(n)", "t"}, {"EXISTS(nothing)", "t"}, {"EXISTS(missing)", "f"}, {"NOT EXISTS(missing)", "t"}, {"EXISTS(map)", "t"},
		{"sys.Label IS NULL", "f"}, {"sys.To IS NULL", "t"}, {"EXISTS(sys.Label)", "t"}, {"EXISTS(sys.To)", "f"},
		{"sys.LockToken IS NULL", "t"}, {"EXISTS(sys.LockToken)", "f"}, {"n + missing IS NULL", "t"}, {"EXISTS(p('n'))", "t"},
		// IN
		{"Priority IN ('Low', 'High')", "t"}, {"Priority IN ('low')", "f"}, {"Priority NOT IN ('Low')", "t"}, {"n IN (4, 5.0)", "t"},
		{"n IN ('5', 5)", "t"}, {"n NOT IN ('5', 6)", "t"}, {"n IN (missing, 5)", "t"}, {"n NOT IN (missing, 6)", "t"}, {"n IN (NULL)", "f"},
		{"n IN (1,2,3,4,5,6,7,8,9,10)", "t"}, {"n IN (1,2,3,4,5.0,6,7,8,9,10)", "t"}, {"n NOT IN (11,2,3,4,6,7,8,9,10,12)", "t"},
		{"missing IN (1,2,3,4,5,6,7,8,9,10)", "u"}, {"n IN (p('n'))", "t"}, {"n + 1 IN (6)", "t"}, {"map IN (1,2,3,4,5,6,7,8,9)", "f"},
		// LIKE
		{"Priority LIKE 'H%'", "t"}, {"Priority LIKE 'h%'", "f"}, {"Priority LIKE '%g_'", "t"}, {"Priority NOT LIKE 'L%'", "t"},
		{"n LIKE '5'", "u"}, {"path LIKE 'orders/%!%%' ESCAPE '!'", "t"}, {"Priority LIKE 'Hi' + '%'", "t"}, {"Priority LIKE p('Priority')", "t"},
		{"Priority LIKE missing", "u"}, {"Priority LIKE 'H%' ESCAPE missing", "u"}, {"Priority LIKE 'H%' ESCAPE empty", "u"}, {"Priority LIKE NULL", "u"},
		// arithmetic
		{"n + 1 = 6", "t"}, {"n - 7 = -2", "t"}, {"n * 3 = 15", "t"}, {"n / 2 = 2", "t"}, {"n % 3 = 2", "t"}, {"minus / 2 = -3", "t"}, {"minus % 4 = -3", "t"},
		{"n / 2.0 = 2.5", "t"}, {"n + d = 7.5", "t"}, {"d % 2 = 0.5", "t"}, {"-n = -5", "t"}, {"+n = 5", "t"}, {"- -n = 5", "t"}, {"-missing = 1", "u"},
		{"-Priority = 1", "u"}, {"+Priority = 'High'", "u"}, {"2 + 3 * 4 = 14", "t"}, {"(2 + 3) * 4 = 20", "t"}, {"d / 0 > 1e300", "t"},
		{"Priority + '!' = 'High!'", "t"}, {"Priority + n = 'High5'", "u"}, {"yes + 1 = 2", "u"},
		{"9223372036854775807 + 1 > 0", "u"}, {"-9223372036854775808 - 1 < 0", "u"}, {"9223372036854775807 * 2 > 0", "u"}, {"-9223372036854775808 / -1 > 0", "u"},
		{"-4611686018427387904 * 2 = -9223372036854775808", "t"}, {"big + 1 > 0", "t"}, {"-big < 0", "t"},
		// dates and durations
		{"due - sent = @span", "t"}, {"(due - sent) <= @span", "t"}, {"sent + @span = due", "t"}, {"@span + sent = due", "t"}, {"due - @span = sent", "t"},
		{"took * 40 = @span", "t"}, {"40 * took = @span", "t"}, {"@span / 40 = took", "t"}, {"@span / took = 40", "t"}, {"took * 0.5 < took", "t"},
		{"took + took > took", "t"}, {"-took < took", "t"}, {"sent + due = 1", "u"}, {"sent * 2 = 1", "u"}, {"@span % took = took - took", "t"},
		{"@span > 5", "u"}, {"@span - sent = took", "u"},
		// names, functions, parameters
		{"[AND] = 1", "t"}, {"[two words] = 2", "t"}, {`"two words" = 2`, "t"}, {"[a]]b] = 3", "t"}, {`"a""b" = 4`, "t"}, {"user.n = 5", "t"}, {"sys = 8", "t"},
		{"p('n') = 5", "t"}, {"property('N') = 5", "t"}, {"p('sys.Label') = 'order.created'", "t"}, {"p('user.n') = 5", "t"}, {"p('Prior' + 'ity') = 'High'", "t"},
		{"p(missing) = 1", "u"}, {"p(n) = 1", "u"}, {"p = 9", "t"}, {"newid() = newid()", "f"},
		{"n = @limit", "t"}, {"Priority = @text", "t"}, {"@flag", "t"}, {"d > @rate", "t"}, {"Priority = @TEXT AND @flag", "t"},
		// system properties
		{"sys.MessageId = 'm-1'", "t"}, {"sys.messageid = 'm-1'", "t"}, {"sys.Label LIKE 'order.%'", "t"}, {"sys.Subject LIKE 'order.%'", "t"},
		{"sys.SequenceNumber = 42", "t"}, {"sys.EnqueuedTimeUtc = sent", "t"}, {"sys.DeliveryCount = 0", "t"}, {"MessageID = rule1", "u"},
	} {
		x := parse(t, tt.sql)
		v, err := x.Eval(sample())
		if err != nil {
			t.Errorf("%s: %v", tt.sql, err)
			continue
		}
		if got := truth(v).String()[:1]; got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.sql, got, tt.want)
		}
		if got, err := x.Match(sample()); got != (tt.want == "t") || err != nil {
			t.Errorf("%s: Match is %v, %v", tt.sql, got, err)
		}
	}
}

func TestEvaluationErrors(t *testing.T) {
	for _, tt := range []struct{ sql, want string }{
		{"n / 0 = 1", "filter: cannot evaluate n / 0: division by zero"},
		{"n % (n - 5) = 1", "filter: cannot evaluate n % (n - 5): division by zero"},
		{"1 / 0 = 1", "filter: cannot evaluate 1 / 0: division by zero"},
		{"sys.LockToken = id", "filter: cannot evaluate sys.LockToken: it has no value at this point"},
		{"sys.LockedUntilUtc > sent", "filter: cannot evaluate sys.LockedUntilUtc: it has no value at this point"},
		{"p('sys.' + 'LockToken') = id", "filter: cannot evaluate property('sys.' + 'LockToken'): it has no value at this point"},
		{"p('sys.' + Priority) = 1", "filter: cannot evaluate property('sys.' + Priority): there is no system property sys.High"},
		{"n / 0 = 1 OR yes", "filter: cannot evaluate n / 0: division by zero"},
	} {
		ok, err := parse(t, tt.sql).Match(sample())
		if _, is := errors.AsType[*evalError](err); ok || !is || !errors.Is(err, ErrEvaluation) || err.Error() != tt.want {
			t.Errorf("%s: %v, %v; want %s", tt.sql, ok, err, tt.want)
		}
	}
	for _, sql := range []string{"no AND n / 0 = 1", "yes OR n / 0 = 1"} {
		if _, err := parse(t, sql).Match(sample()); err != nil {
			t.Errorf("%s: %v, want the first part to decide", sql, err)
		}
	}
	if _, err := parse(t, "newid() = id").Match(orderMessage()); !errors.Is(err, ErrEvaluation) {
		t.Errorf("newid() without a source: %v, want %v", err, ErrEvaluation)
	}
}

func TestParseValueTakesAnyType(t *testing.T) {
	for sql, want := range map[string]value.Value{
		"Priority":              value.MakeString("High"),
		"n + 1":                 value.MakeInt(6),
		"Priority + '/' + name": value.MakeString("High/O'Neil"),
		"n > 1":                 value.MakeBool(true),
		"missing":               {},
		"newid()":               value.MakeUUID([16]byte{15: 1}),
	} {
		x, err := ParseValue(sql, nil)
		if err != nil {
			t.Errorf("ParseValue(%s): %v", sql, err)
			continue
		}
		if got, err := x.Eval(sample()); got != want || err != nil {
			t.Errorf("%s is %v, %v; want %v", sql, got, err, want)
		}
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	m := orderMessage()
	bad := 0
	set := Compile([]Filter{
		True, parse(t, "amount > 10 AND weight < 3"), parse(t, "Priority = 'High' AND sys.Label LIKE 'o%'"),
		&Correlation{Subject: "order.created", Properties: map[string]value.Value{"amount": value.MakeInt(250)}},
	})
	hits := 0
	hit := func(int, error) { hits++ }
	for _, sql := range []string{
		"Priority = 'High' AND tenant <> 'fabrikam' AND amount > 100 AND weight <= 2.5 AND express",
		"PRIORITY LIKE '%ig_' AND tenant IN ('a','b','c','d','e','f','g','h','contoso') AND NOT EXISTS(nope)",
		"amount * 2 + 1 >= 501 AND p('amount') % 7 = 5 AND sys.MessageId IS NOT NULL AND sys.TimeToLive > @span",
		"tenant LIKE p('tenant') OR missing = 1",
	} {
		x := parse(t, sql)
		if n := testing.AllocsPerRun(100, func() {
			if ok, err := x.Match(m); !ok || err != nil {
				bad++
			}
		}); n != 0 || bad != 0 {
			t.Errorf("%s: %v allocations, %d misses", sql, n, bad)
		}
	}
	if n := testing.AllocsPerRun(100, func() { set.Match(m, hit) }); n != 0 || hits != 4*101 {
		t.Errorf("rule set: %v allocations, %d hits, want 0 and %d", n, hits, 4*101)
	}
}
