// SPDX-License-Identifier: Apache-2.0

package value

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseTyped reads text as a value of the XML schema type typ: string, int, long,
// double, boolean, dateTime, duration, as rule descriptions carry them, and the
// further types that clients send (guid, decimal, float, short, …).
func ParseTyped(typ, text string) (Value, error) {
	v, err := parseTyped(typ, strings.TrimSpace(text), text)
	if err != nil {
		return Value{}, fmt.Errorf("filter: %q is not a value of type %s: %w", text, typ, err)
	}
	return v, nil
}

func parseTyped(typ, text, raw string) (Value, error) {
	switch typ {
	case "string", "char", "anyURI":
		return MakeString(raw), nil
	case "boolean":
		b, err := strconv.ParseBool(text)
		return MakeBool(b), err
	case "long":
		return parseInt(text, 64, Widest)
	case "int":
		return parseInt(text, 32, Int32)
	case "short":
		return parseInt(text, 16, Int16)
	case "byte":
		return parseInt(text, 8, Int8)
	case "unsignedLong":
		return parseUint(text, 64, Uint64)
	case "unsignedInt":
		return parseUint(text, 32, Uint32)
	case "unsignedShort":
		return parseUint(text, 16, Uint16)
	case "unsignedByte":
		return parseUint(text, 8, Uint8)
	case "double", "decimal", "float":
		f, err := strconv.ParseFloat(text, 64)
		return MakeDouble(f), err
	case "dateTime":
		return parseTime(text)
	case "duration":
		ticks, err := parseDuration(text)
		return MakeTicks(ticks), err
	case "guid", "uuid":
		return parseUUID(text)
	default:
		return Value{}, errors.New("there is no such type")
	}
}

func parseInt(text string, bits int, w Width) (Value, error) {
	n, err := strconv.ParseInt(text, 10, bits)
	return MakeInt(n).WithWidth(w), err
}

func parseUint(text string, bits int, w Width) (Value, error) {
	n, err := strconv.ParseUint(text, 10, bits)
	return MakeUint(n).WithWidth(w), err
}

// parseTime accepts dateTime with or without a zone; without one it is UTC.
func parseTime(text string) (Value, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return MakeTime(t), nil
		}
	}
	return Value{}, errors.New("want a date and time such as 2030-01-31T18:30:00Z")
}

func parseUUID(text string) (Value, error) {
	var id [16]byte
	bare := strings.ReplaceAll(text, "-", "")
	if len(bare) != 32 {
		return Value{}, errors.New("want 32 hexadecimal digits")
	}
	if _, err := hex.Decode(id[:], []byte(bare)); err != nil {
		return Value{}, errors.New("want 32 hexadecimal digits")
	}
	return MakeUUID(id), nil
}

var errDuration = errors.New("want a duration such as P1DT2H30M or PT0.5S")

// parseDuration reads an ISO 8601 duration without years and months, whose
// length is not fixed, into ticks. Values beyond the range are clamped, because
// clients write "no expiry" with more digits than fit.
func parseDuration(text string) (int64, error) {
	rest, negative := strings.CutPrefix(text, "-")
	rest, ok := strings.CutPrefix(rest, "P")
	if !ok || rest == "" || strings.HasSuffix(rest, "T") {
		return 0, errDuration
	}
	days, clock, _ := strings.Cut(rest, "T")
	var total float64 // only to find values out of range
	var ticks int64
	for i, part := range []string{days, clock} {
		units := [...]string{"WD", "HMS"}[i]
		for part != "" {
			end := strings.IndexFunc(part, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
			if end <= 0 {
				return 0, errDuration
			}
			at := strings.IndexByte(units, part[end])
			if at < 0 {
				return 0, errDuration
			}
			n, f, err := ticksOf(part[:end], unitSeconds[part[end]])
			if err != nil {
				return 0, err
			}
			ticks, total = ticks+n, total+f
			units, part = units[at+1:], part[end+1:] // units are in order, each once
		}
	}
	if total >= math.MaxInt64 || ticks < 0 { // the sum may wrap just below the end
		ticks = math.MaxInt64
	}
	if negative {
		ticks = -ticks
	}
	return ticks, nil
}

var unitSeconds = map[byte]int64{'W': 604800, 'D': 86400, 'H': 3600, 'M': 60, 'S': 1}

// ticksOf returns number times seconds, exactly and roughly.
func ticksOf(number string, seconds int64) (int64, float64, error) {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, 0, errDuration
	}
	rough := f * float64(seconds) * ticksPerSecond
	if rough >= math.MaxInt64 {
		return 0, rough, nil
	}
	whole, fraction, _ := strings.Cut(number, ".")
	n, _ := strconv.ParseInt(whole+"0", 10, 64) // the 0 makes ".5" a number
	fraction = (fraction + "0000000")[:7]
	part, _ := strconv.ParseInt(fraction, 10, 64)
	return n/10*seconds*ticksPerSecond + part*seconds, rough, nil
}

// formatDuration writes ticks as an ISO 8601 duration, as .NET does.
func formatDuration(ticks int64) string {
	var b strings.Builder
	n := uint64(ticks)
	if ticks < 0 {
		b.WriteByte('-')
		n = -n
	}
	b.WriteByte('P')
	const second, minute, hour, day = ticksPerSecond, 60 * ticksPerSecond, 3600 * ticksPerSecond, 86400 * ticksPerSecond
	if d := n / day; d > 0 {
		fmt.Fprintf(&b, "%dD", d)
	}
	if n%day == 0 && n > 0 {
		return b.String()
	}
	b.WriteByte('T')
	if h := n % day / hour; h > 0 {
		fmt.Fprintf(&b, "%dH", h)
	}
	if m := n % hour / minute; m > 0 {
		fmt.Fprintf(&b, "%dM", m)
	}
	switch s, fraction := n%minute/second, n%second; {
	case fraction > 0:
		fmt.Fprintf(&b, "%d.%sS", s, strings.TrimRight(fmt.Sprintf("%07d", fraction), "0"))
	case s > 0 || n == 0:
		fmt.Fprintf(&b, "%dS", s)
	}
	return b.String()
}
