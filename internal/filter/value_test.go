// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"math"
	"testing"
	"time"
)

func TestParseTyped(t *testing.T) {
	for _, tt := range []struct {
		typ, text string
		want      Value
	}{
		{"string", " a ", StringValue(" a ")}, {"int", "-5", IntValue(-5).WithWidth(Int32)}, {"long", " 5000000000 ", IntValue(5e9)},
		{"double", "1.5E3", DoubleValue(1500)}, {"boolean", "true", BoolValue(true)}, {"boolean", "0", BoolValue(false)},
		{"dateTime", "2030-01-31T12:00:00Z", TimeValue(noon)}, {"dateTime", "2030-01-31T13:00:00+01:00", TimeValue(noon)},
		{"dateTime", "2030-01-31T12:00:00", TimeValue(noon)}, {"dateTime", "2030-01-31T12:00:00.0000001Z", TimeValue(noon.Add(100))},
		{"duration", "PT1H", DurationValue(time.Hour)}, {"guid", "01000000-0000-0000-0000-000000000000", UUIDValue([16]byte{1})},
		{"unsignedLong", "18446744073709551615", UintValue(math.MaxUint64).WithWidth(Uint64)}, {"short", "7", IntValue(7).WithWidth(Int16)},
	} {
		if got, err := ParseTyped(tt.typ, tt.text); got != tt.want || err != nil {
			t.Errorf("ParseTyped(%s, %q) = %v, %v; want %v", tt.typ, tt.text, got, err, tt.want)
		}
	}
	for _, bad := range [][2]string{
		{"int", "3000000000"}, {"int", "x"}, {"long", ""}, {"double", "one"}, {"boolean", "ja"}, {"dateTime", "yesterday"},
		{"duration", "1h"}, {"duration", "P1Y"}, {"duration", "P"}, {"duration", "PT"}, {"duration", "PT1M1H"}, {"duration", "PTS"},
		{"duration", "P1H"}, {"duration", "PT1.2.3S"}, {"duration", "PT.S"}, {"guid", "01"}, {"guid", "zz000000-0000-0000-0000-000000000000"}, {"nope", "1"},
	} {
		if got, err := ParseTyped(bad[0], bad[1]); err == nil {
			t.Errorf("ParseTyped(%s, %q) = %v, want an error", bad[0], bad[1], got)
		}
	}
}

func TestDurationText(t *testing.T) {
	for _, tt := range []struct {
		text  string
		ticks int64
	}{
		{"PT0S", 0}, {"PT0.0000001S", 1}, {"PT1.5S", 15_000_000}, {"PT1M", 60 * ticksPerSecond}, {"P1D", 86400 * ticksPerSecond},
		{"P1DT2H3M4.5S", (86400+2*3600+3*60+4)*ticksPerSecond + 5_000_000}, {"-PT1S", -ticksPerSecond},
		{"P10675199DT2H48M5.4775807S", math.MaxInt64},
	} {
		if got := formatDuration(tt.ticks); got != tt.text {
			t.Errorf("%d ticks are %s, want %s", tt.ticks, got, tt.text)
		}
		if got, err := parseDuration(tt.text); got != tt.ticks || err != nil {
			t.Errorf("%s is %d ticks, %v; want %d", tt.text, got, err, tt.ticks)
		}
	}
	for text, want := range map[string]int64{
		"P1W": 7 * 86400 * ticksPerSecond, "PT90M": 5400 * ticksPerSecond, "PT.5S": ticksPerSecond / 2, "P0.5D": 43200 * ticksPerSecond,
		"P99999999999D": math.MaxInt64, "P10675199DT23H": math.MaxInt64,
	} {
		if got, err := parseDuration(text); got != want || err != nil {
			t.Errorf("%s is %d ticks, %v; want %d", text, got, err, want)
		}
	}
}

// TestKeyAgreesWithEquality is invariant 1.
func TestKeyAgreesWithEquality(t *testing.T) {
	values := []Value{
		{}, NullValue(), OpaqueValue(), BoolValue(true), BoolValue(false), IntValue(0), IntValue(1), IntValue(1).WithWidth(Int8), IntValue(-1),
		IntValue(math.MaxInt64), IntValue(math.MinInt64), UintValue(math.MaxInt64), UintValue(1 << 63), UintValue(math.MaxUint64),
		DoubleValue(0), DoubleValue(math.Copysign(0, -1)), DoubleValue(1), DoubleValue(1.5), DoubleValue(-1), DoubleValue(1 << 63), DoubleValue(math.MinInt64),
		DoubleValue(1 << 64), DoubleValue(math.Inf(1)), DoubleValue(math.Inf(-1)), DoubleValue(math.NaN()), DoubleValue(1 << 53), IntValue(1<<53 + 1),
		StringValue(""), StringValue("1"), StringValue("a"), BinaryValue("a"), TimeValue(noon), TimeValue(time.Unix(0, 0)), DurationValue(0), DurationValue(1e9),
		UUIDValue([16]byte{}), UUIDValue([16]byte{1}), UUIDValue([16]byte{15: 1}),
	}
	for _, a := range values {
		for _, b := range values {
			ka, okA := a.key()
			kb, okB := b.key()
			want := okA && okB && ka == kb
			if got := compare(&a, &b) == same; got != want {
				t.Errorf("%v %v = %v %v is %v, but their keys are equal: %v", a.Kind(), a, b.Kind(), b, got, want)
			}
			if got := equal(&a, &b) == same; got != want {
				t.Errorf("equal(%v, %v) is %v, want %v", a, b, got, want)
			}
			if compare(&a, &b) != compare(&b, &a).reversed() {
				t.Errorf("%v and %v compare differently from the other side", a, b)
			}
		}
	}
}

func TestAccessors(t *testing.T) {
	if n, ok := UintValue(math.MaxUint64).Int(); ok {
		t.Errorf("the largest ulong is the integer %d", n)
	}
	if n, ok := IntValue(-1).Uint(); ok {
		t.Errorf("-1 is the unsigned %d", n)
	}
	if got := TicksValue(math.MaxInt64).Duration(); got < 290*365*24*time.Hour {
		t.Errorf("the longest duration was cut to %v", got)
	}
	if got := TimeValue(time.Unix(-1, 999_999_900)).Time(); !got.Equal(time.Unix(-1, 999_999_900)) {
		t.Errorf("a time before 1970 is read back as %v", got)
	}
	if got := MilliValue(math.MaxInt64).Time().Year(); got < 9999 {
		t.Errorf("the last timestamp is in the year %d", got)
	}
	if got := StringValue("x").Double() + float64(StringValue("x").Ticks()); got != 0 || !StringValue("x").Time().IsZero() {
		t.Error("a string has a number in it")
	}
}

func TestLike(t *testing.T) {
	for _, tt := range []struct {
		s, pattern, escape string
		want               bool
	}{
		{"", "", "", true}, {"a", "", "", false}, {"", "%", "", true}, {"", "_", "", false}, {"abc", "abc", "", true}, {"abc", "ab", "", false},
		{"abc", "a%", "", true}, {"abc", "%c", "", true}, {"abc", "%b%", "", true}, {"abc", "%%", "", true}, {"abc", "b%", "", false},
		{"abc", "a_c", "", true}, {"abc", "___", "", true}, {"abc", "__", "", false}, {"abc", "_%_", "", true}, {"ab", "_%_%_", "", false},
		{"grüße", "gr__e", "", true}, {"grüße", "gr_e", "", false}, {"a%c", "a!%c", "!", true}, {"abc", "a!%c", "!", false}, {"a_c", "a!_c", "!", true},
		{"a!c", "a!!c", "!", true}, {"abc", "a!bc", "!", true}, {"100%", "%!%", "!", true}, {"100", "%!%", "!", false},
		{"aXbXc", "a%X%c", "", true}, {"aaaab", "%a%a%b", "", true}, {"mississippi", "m%iss%pi", "", true}, {"mississippi", "m%isx%pi", "", false},
		{"ab", "a%b%", "", true}, {"x%", "x%%", "%", true}, {"xy", "x%%", "%", false}, {"a\nb", "a_b", "", true}, {"abab", "%ab", "", true},
	} {
		e := env{steps: defaultSteps}
		p, ok := compilePattern(tt.pattern, tt.escape)
		if got := e.match(tt.s, &p); !ok || got != tt.want {
			t.Errorf("%q LIKE %q ESCAPE %q: %v, %v, want %v", tt.s, tt.pattern, tt.escape, got, ok, tt.want)
		}
		if got := e.like(tt.s, pieces{text: tt.pattern, escape: escapeRune(tt.escape)}); got != tt.want {
			t.Errorf("cut as it goes, %q LIKE %q ESCAPE %q: %v, want %v", tt.s, tt.pattern, tt.escape, got, tt.want)
		}
	}
	if ok, err := parse(t, "'a' LIKE Priority ESCAPE 'h'").Match(sample()); ok || err != nil {
		t.Errorf("a pattern that ends in its escape character: %v, %v", ok, err)
	}
}
