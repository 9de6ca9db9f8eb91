// SPDX-License-Identifier: Apache-2.0

package value

import (
	"math"
	"testing"
	"time"
)

var midday = time.Date(2030, time.January, 31, 12, 0, 0, 0, time.UTC)

func TestParseTyped(t *testing.T) {
	for _, tt := range []struct {
		typ, text string
		want      Value
	}{
		{"string", " a ", MakeString(" a ")}, {"int", "-5", MakeInt(-5).WithWidth(Int32)}, {"long", " 5000000000 ", MakeInt(5e9)},
		{"double", "1.5E3", MakeDouble(1500)}, {"boolean", "true", MakeBool(true)}, {"boolean", "0", MakeBool(false)},
		{"dateTime", "2030-01-31T12:00:00Z", MakeTime(midday)}, {"dateTime", "2030-01-31T13:00:00+01:00", MakeTime(midday)},
		{"dateTime", "2030-01-31T12:00:00", MakeTime(midday)}, {"dateTime", "2030-01-31T12:00:00.0000001Z", MakeTime(midday.Add(100))},
		{"duration", "PT1H", MakeDuration(time.Hour)}, {"guid", "01000000-0000-0000-0000-000000000000", MakeUUID([16]byte{1})},
		{"unsignedLong", "18446744073709551615", MakeUint(math.MaxUint64).WithWidth(Uint64)}, {"short", "7", MakeInt(7).WithWidth(Int16)},
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
		{}, MakeNull(), MakeOpaque(), MakeBool(true), MakeBool(false), MakeInt(0), MakeInt(1), MakeInt(1).WithWidth(Int8), MakeInt(-1),
		MakeInt(math.MaxInt64), MakeInt(math.MinInt64), MakeUint(math.MaxInt64), MakeUint(1 << 63), MakeUint(math.MaxUint64),
		MakeDouble(0), MakeDouble(math.Copysign(0, -1)), MakeDouble(1), MakeDouble(1.5), MakeDouble(-1), MakeDouble(1 << 63), MakeDouble(math.MinInt64),
		MakeDouble(1 << 64), MakeDouble(math.Inf(1)), MakeDouble(math.Inf(-1)), MakeDouble(math.NaN()), MakeDouble(1 << 53), MakeInt(1<<53 + 1),
		MakeString(""), MakeString("1"), MakeString("a"), MakeBinary("a"), MakeTime(midday), MakeTime(time.Unix(0, 0)), MakeDuration(0), MakeDuration(1e9),
		MakeUUID([16]byte{}), MakeUUID([16]byte{1}), MakeUUID([16]byte{15: 1}),
	}
	for _, a := range values {
		for _, b := range values {
			ka, okA := a.Key()
			kb, okB := b.Key()
			want := okA && okB && ka == kb
			if got := Compare(&a, &b) == Same; got != want {
				t.Errorf("%v %v = %v %v is %v, but their keys are equal: %v", a.Kind(), a, b.Kind(), b, got, want)
			}
			if got := Equal(&a, &b) == Same; got != want {
				t.Errorf("equal(%v, %v) is %v, want %v", a, b, got, want)
			}
			if Compare(&a, &b) != Compare(&b, &a).reversed() {
				t.Errorf("%v and %v compare differently from the other side", a, b)
			}
		}
	}
}

func TestAccessors(t *testing.T) {
	if n, ok := MakeUint(math.MaxUint64).Int(); ok {
		t.Errorf("the largest ulong is the integer %d", n)
	}
	if n, ok := MakeInt(-1).Uint(); ok {
		t.Errorf("-1 is the unsigned %d", n)
	}
	if got := MakeTicks(math.MaxInt64).Duration(); got < 290*365*24*time.Hour {
		t.Errorf("the longest duration was cut to %v", got)
	}
	if got := MakeTime(time.Unix(-1, 999_999_900)).Time(); !got.Equal(time.Unix(-1, 999_999_900)) {
		t.Errorf("a time before 1970 is read back as %v", got)
	}
	if got := makeMilli(math.MaxInt64).Time().Year(); got < 9999 {
		t.Errorf("the last timestamp is in the year %d", got)
	}
	if got := MakeString("x").Double() + float64(MakeString("x").Ticks()); got != 0 || !MakeString("x").Time().IsZero() {
		t.Error("a string has a number in it")
	}
}
