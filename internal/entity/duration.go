// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time as people and Service Bus write it. It is read
// from the short form (90s, 1h30m, 14d), from ISO 8601 (PT1M30S, P14D) and from
// the word forever. It is never negative.
type Duration time.Duration

// Forever is longer than anything: no time limit. It is what becomes of every
// value too large for a Duration, such as the TimeSpan.Max of .NET, which is how
// the SDKs write it.
const Forever Duration = math.MaxInt64

// isoForever is TimeSpan.Max. The administration clients compare it as text.
const isoForever = "P10675199DT2H48M5.4775807S"

const day = 24 * Duration(time.Hour)

// errDuration describes the forms of a duration; ParseDuration wraps it.
var errDuration = errors.New("not a duration such as 30s, 5m, 1h30m, 14d, PT5M or forever")

// Std returns d as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// ParseDuration reads either form.
func ParseDuration(text string) (Duration, error) {
	s := strings.TrimSpace(text)
	if strings.EqualFold(s, "forever") {
		return Forever, nil
	}
	parse := parseShort
	if len(s) > 0 && (s[0] == 'P' || s[0] == 'p') {
		parse = parseISO
	}
	d, ok := parse(s)
	if !ok {
		return 0, fmt.Errorf("%q is %w", text, errDuration)
	}
	return d, nil
}

// parseShort reads Go's form plus days, which must be first: 1d12h.
func parseShort(s string) (Duration, bool) {
	var sum Duration
	if number, rest, found := strings.Cut(s, "d"); found {
		days, ok := scale(number, day)
		if !ok {
			return 0, false
		}
		if rest == "" {
			return days, true
		}
		sum, s = days, rest
	}
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		return 0, false
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, false
	}
	return add(sum, Duration(d)), true
}

// isoUnits are the designators in the order ISO 8601 wants them, before and
// after the T. Years and months have no fixed length; they count 365 and 30
// days, as .NET does it.
var (
	isoDateUnits = []isoUnit{{'Y', 365 * day}, {'M', 30 * day}, {'W', 7 * day}, {'D', day}}
	isoTimeUnits = []isoUnit{{'H', Duration(time.Hour)}, {'M', Duration(time.Minute)}, {'S', Duration(time.Second)}}
)

type isoUnit struct {
	designator byte
	length     Duration
}

func parseISO(s string) (Duration, bool) {
	s = strings.ToUpper(s[1:]) // s begins with P
	date, clock, hasClock := strings.Cut(s, "T")
	if s == "" || hasClock && clock == "" {
		return 0, false
	}
	days, ok := parseISOPart(date, isoDateUnits)
	if !ok {
		return 0, false
	}
	rest, ok := parseISOPart(clock, isoTimeUnits)
	return add(days, rest), ok
}

// parseISOPart reads numbers with designators, each at most once and in order.
func parseISOPart(s string, units []isoUnit) (sum Duration, ok bool) {
	for s != "" {
		n := strings.IndexFunc(s, func(r rune) bool { return r >= 'A' })
		if n < 0 {
			return 0, false
		}
		for len(units) > 0 && units[0].designator != s[n] {
			units = units[1:]
		}
		if len(units) == 0 {
			return 0, false
		}
		d, ok := scale(strings.ReplaceAll(s[:n], ",", "."), units[0].length)
		if !ok {
			return 0, false
		}
		sum, units, s = add(sum, d), units[1:], s[n+1:]
	}
	return sum, true
}

// scale returns a decimal number of units, Forever if that is too much. Digits
// after the ninth of the fraction are dropped.
func scale(number string, unit Duration) (Duration, bool) {
	whole, fraction, dotted := strings.Cut(number, ".")
	if !digits(whole) || dotted && !digits(fraction) {
		return 0, false
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > int64(Forever/unit) { // digits only, so it is too large
		return Forever, true
	}
	// Nine digits are a nanosecond of a second, and the product fits 128 bits.
	f, _ := strconv.ParseUint((fraction + "000000000")[:9], 10, 64)
	hi, lo := bits.Mul64(f, uint64(unit))
	part, _ := bits.Div64(hi, lo, 1e9)
	return add(Duration(n)*unit, Duration(part)), true
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// add saturates at Forever. Both are at least zero.
func add(a, b Duration) Duration {
	if a > Forever-b {
		return Forever
	}
	return a + b
}

// String is the short form: 1h30m, 14d, forever.
func (d Duration) String() string {
	switch {
	case d == Forever:
		return "forever"
	case d > 0 && d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// ISO is the ISO 8601 form, as .NET writes it: PT1M30S, P14D.
func (d Duration) ISO() string {
	switch d {
	case Forever:
		return isoForever
	case 0:
		return "PT0S"
	}
	b := []byte("P")
	b = appendUnits(b, &d, day, 'D')
	if d == 0 {
		return string(b)
	}
	b = append(b, 'T')
	b = appendUnits(b, &d, Duration(time.Hour), 'H')
	b = appendUnits(b, &d, Duration(time.Minute), 'M')
	if d != 0 {
		seconds := fmt.Sprintf("%d.%09d", d/Duration(time.Second), d%Duration(time.Second))
		b = append(b, strings.TrimRight(strings.TrimRight(seconds, "0"), ".")...)
		b = append(b, 'S')
	}
	return string(b)
}

// appendUnits moves the whole units out of d and into b.
func appendUnits(b []byte, d *Duration, unit Duration, designator byte) []byte {
	n := *d / unit
	if n == 0 {
		return b
	}
	*d %= unit
	return append(strconv.AppendInt(b, int64(n), 10), designator)
}

// MarshalText writes the short form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads either form.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = v
	return nil
}
