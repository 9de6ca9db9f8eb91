// SPDX-License-Identifier: Apache-2.0

package window

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Parse reads windows as the package comment describes them. A window without a zone
// is in local. The error names every fault of every window.
func Parse(specs []string, local *time.Location) (Set, error) {
	var s Set
	var errs []error
	for _, spec := range specs {
		w, faults := parse(spec, local)
		for _, fault := range faults {
			errs = append(errs, fmt.Errorf("window %q: %w", spec, fault))
		}
		s.windows = append(s.windows, w)
	}
	if err := errors.Join(errs...); err != nil {
		return Set{}, err
	}
	return s, nil
}

// separator is a comma or a dash with blanks around it, which do not matter.
var separator = regexp.MustCompile(`\s*(,)\s*|\s+(-)\s+|\s+(-)|(-)\s+`)

// form tells a user what to write.
const form = `write it like "Mon-Fri 19:00-07:00 Europe/Berlin"; it needs days or hours, and the zone may be left out`

func parse(spec string, local *time.Location) (window, []error) {
	parts := strings.Fields(separator.ReplaceAllString(spec, "$1$2$3$4"))
	if len(parts) == 0 {
		return window{}, []error{errors.New("it is empty; " + form)}
	}
	var faults []error
	add := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	days, begin, end, zone := everyDay, int64(0), int64(day), local
	hasDays, hasHours := false, false
	if looksLikeDays(parts[0]) {
		var err error
		days, err = parseDays(parts[0])
		add(err)
		parts, hasDays = parts[1:], true
	}
	if len(parts) > 0 && looksLikeHours(parts[0]) {
		var err error
		begin, end, err = parseHours(parts[0])
		add(err)
		parts, hasHours = parts[1:], true
	}
	if len(parts) > 0 && (hasDays || hasHours) {
		var err error
		zone, err = time.LoadLocation(parts[0])
		if err != nil || parts[0] == "Local" {
			add(fmt.Errorf("%q is not a time zone that this machine knows; zones are like Europe/Berlin or UTC", parts[0]))
			zone = local
		}
		parts = parts[1:]
	}
	if len(parts) > 0 {
		add(fmt.Errorf("%q is not understood; %s", strings.Join(parts, " "), form))
	}
	return window{zone: zone, spans: spans(days, begin, end)}, faults
}

var everyDay = [7]bool{true, true, true, true, true, true, true}

// looksLikeDays reports whether a part begins with a letter and is no name of a zone, which
// has a slash or follows other parts.
func looksLikeDays(part string) bool {
	return (part[0]|0x20 >= 'a' && part[0]|0x20 <= 'z') && !strings.Contains(part, "/")
}

func looksLikeHours(part string) bool { return part[0] >= '0' && part[0] <= '9' }

// parseDays reads "daily", or names of days and ranges of them with commas between.
func parseDays(part string) (days [7]bool, err error) {
	if strings.EqualFold(part, "daily") {
		return everyDay, nil
	}
	var faults []error
	for item := range strings.SplitSeq(part, ",") {
		first, last, isRange := strings.Cut(item, "-")
		if !isRange {
			last = first
		}
		from, ok1 := weekday(first)
		to, ok2 := weekday(last)
		if !ok1 {
			faults = append(faults, fmt.Errorf("%q is not a day; days are Mon Tue Wed Thu Fri Sat Sun, or daily", first))
		}
		if !ok2 && isRange {
			faults = append(faults, fmt.Errorf("%q is not a day; days are Mon Tue Wed Thu Fri Sat Sun, or daily", last))
		}
		if !ok1 || !ok2 {
			continue
		}
		for d := from; ; d = (d + 1) % 7 { // Sat-Mon is three days
			days[d] = true
			if d == to {
				break
			}
		}
	}
	return days, errors.Join(faults...)
}

// weekday reads the name of a day, in full or its first three letters.
func weekday(name string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(name, d.String()) || strings.EqualFold(name, d.String()[:3]) {
			return d, true
		}
	}
	return 0, false
}

// parseHours reads HH:MM-HH:MM.
func parseHours(part string) (begin, end int64, err error) {
	first, last, ok := strings.Cut(part, "-")
	if !ok {
		return 0, 0, fmt.Errorf("%q has no end; hours are like 19:00-07:00", part)
	}
	begin, err1 := timeOfDay(first)
	end, err2 := timeOfDay(last)
	if err1 == nil && begin == day {
		err1 = errors.New(`a window does not begin at 24:00; write 00:00 of the next day`)
	}
	return begin, end, errors.Join(err1, err2)
}

// timeOfDay reads HH:MM, at most 24:00, as seconds.
func timeOfDay(text string) (int64, error) {
	hours, minutes, ok := strings.Cut(text, ":")
	h, err1 := strconv.ParseUint(hours, 10, 8)
	m, err2 := strconv.ParseUint(minutes, 10, 8)
	if !ok || err1 != nil || err2 != nil || len(hours) > 2 || len(minutes) != 2 || m > 59 || h*60+m > 24*60 {
		return 0, fmt.Errorf("%q is not a time of day from 00:00 to 24:00", text)
	}
	return int64(h*60+m) * minute, nil
}
