// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"testing"

	"github.com/triagemq/triagemq/internal/filter/value"
)

func TestExplain(t *testing.T) {
	for _, tt := range []struct{ sql, result, want string }{
		{"Priority = 'Low'", "false", "Priority = 'Low' was false: Priority is 'High'"},
		{"Priority = 'High'", "true", "Priority = 'High' was true: Priority is 'High'"},
		{"missing = 'x'", "unknown", "missing = 'x' was unknown: missing is not set"},
		{"nothing = 'x'", "unknown", "nothing = 'x' was unknown: nothing is null"},
		{"n = '5'", "unknown", "n = '5' was unknown: n is 5, which is of another type"},
		{"n > d AND n < d AND n = 7", "false", "n < d was false: n is 5 and d is 2.5"},
		{"n = 5 AND missing = 1 AND other = 2", "unknown", "missing = 1 was unknown: missing is not set; other = 2 was unknown: other is not set"},
		{"n = 5 AND yes", "true", "n = 5 was true: n is 5; yes was true: yes is TRUE"},
		{"n = 4 OR n = 5 OR n > 1", "true", "n = 5 was true: n is 5"},
		{"n = 4 OR d = 4", "false", "n = 4 was false: n is 5; d = 4 was false: d is 2.5"},
		{"NOT (n = 5 OR yes)", "false", "n = 5 was true: n is 5"},
		{"n * n > 30", "false", "n * n > 30 was false: n is 5"},
		{"sys.Label LIKE 'x%'", "false", "sys.Label LIKE 'x%' was false: sys.Label is 'order.created'"},
		{"Priority NOT IN ('High', 'Top')", "false", "Priority NOT IN ('High', 'Top') was false: Priority is 'High'"},
		{"EXISTS(missing)", "false", "EXISTS(missing) was false: missing is not set"},
		{"p('n') = 6", "false", "property('n') = 6 was false: property('n') is 5"},
		{"map = 1", "unknown", "map = 1 was unknown: map is of a type that cannot be compared, which is of another type"},
		{"1 = 0", "false", "1 = 0 was false"},
		{"n / 0 = 1", "error", "n / 0 failed: division by zero"},
	} {
		x := parse(t, tt.sql)
		got := x.Explain(sample())
		if got.String() != tt.want || got.Result != tt.result {
			t.Errorf("%s\n got %s: %s\nwant %s: %s", tt.sql, got.Result, got, tt.result, tt.want)
		}
		if ok, _ := x.Match(sample()); ok != got.Matched {
			t.Errorf("%s: explained as %v, but Match is %v", tt.sql, got.Matched, ok)
		}
	}
}

func TestExplainOtherFilters(t *testing.T) {
	for _, tt := range []struct {
		f    Filter
		want string
	}{
		{True, "the filter takes every message"},
		{False, "the filter takes no message"},
		{&Correlation{}, "an empty filter matches nothing"},
		{&Correlation{Subject: "x", To: "y"}, "sys.Label = 'x' was false: sys.Label is 'order.created'"},
		{&Correlation{To: "y"}, "sys.To = 'y' was unknown: sys.To is null"},
		{&Correlation{Subject: "order.created", Properties: map[string]value.Value{"n": value.MakeInt(5)}},
			"sys.Label = 'order.created' was true: sys.Label is 'order.created'; n = 5 was true: n is 5"},
	} {
		if got := tt.f.Explain(sample()).String(); got != tt.want {
			t.Errorf("%v\n got %s\nwant %s", tt.f, got, tt.want)
		}
	}
}
