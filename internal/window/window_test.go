// SPDX-License-Identifier: Apache-2.0

package window_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the tests need more zones than a bare machine has

	"github.com/triagemq/triagemq/internal/window"
)

const layout = "2006-01-02 15:04 -0700"

func at(t *testing.T, zone, text string) time.Time {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	form := "2006-01-02 15:04"
	if strings.Count(text, " ") == 2 {
		form = layout
	}
	got, err := time.ParseInLocation(form, text, loc)
	if err != nil {
		t.Fatal(err)
	}
	return got.In(loc)
}

func parse(t *testing.T, specs ...string) window.Set {
	t.Helper()
	s, err := window.Parse(specs, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// 2026-11-16 is a Monday.
func TestOpen(t *testing.T) {
	for _, c := range []struct {
		windows  string // with ; between them
		open     string // times that are inside, with , between them
		closed   string
		location string
	}{
		{"Mon-Fri 19:00-07:00", "2026-11-16 19:00,2026-11-17 06:59,2026-11-21 06:59", "2026-11-16 06:59,2026-11-16 18:59,2026-11-17 07:00,2026-11-21 07:00,2026-11-21 19:00", "UTC"},
		{"Sat,Sun", "2026-11-21 00:00,2026-11-22 23:59", "2026-11-20 23:59,2026-11-23 00:00", "UTC"},
		{"22:00-06:00", "2026-11-16 22:00,2026-11-16 05:59", "2026-11-16 06:00,2026-11-16 21:59", "UTC"},
		{"daily 09:00-17:00 UTC", "2026-11-16 10:00,2026-11-16 17:59", "2026-11-16 09:59,2026-11-16 18:00", "Europe/Berlin"},
		{"Sat 22:00-06:00", "2026-11-21 22:00,2026-11-22 05:59", "2026-11-22 06:00,2026-11-21 05:00", "UTC"}, // over the end of the week
		{"Sat-Mon 08:00-09:00", "2026-11-21 08:00,2026-11-22 08:00,2026-11-23 08:00", "2026-11-24 08:00,2026-11-20 08:00", "UTC"},
		{"monday, WED 00:00 - 24:00", "2026-11-16 00:00,2026-11-16 23:59,2026-11-18 12:00", "2026-11-17 00:00,2026-11-15 23:59", "UTC"},
		{"Mon 09:00-09:00", "2026-11-16 09:00,2026-11-17 08:59", "2026-11-16 08:59,2026-11-17 09:00", "UTC"},
		{"Mon 09:00-10:00;Mon 09:30-11:00;Tue", "2026-11-16 09:00,2026-11-16 10:59,2026-11-17 03:00", "2026-11-16 11:00,2026-11-18 00:00", "UTC"},
		{"Mon 1:00-2:00 America/Port-au-Prince", "2026-11-16 06:30", "2026-11-16 01:30", "UTC"},
	} {
		s := parse(t, strings.Split(c.windows, ";")...)
		for text := range strings.SplitSeq(c.open, ",") {
			if !s.Open(at(t, c.location, text)) {
				t.Errorf("%s: closed at %s %s", c.windows, text, c.location)
			}
		}
		for text := range strings.SplitSeq(c.closed, ",") {
			if s.Open(at(t, c.location, text)) {
				t.Errorf("%s: open at %s %s", c.windows, text, c.location)
			}
		}
	}
}

func TestWithoutWindowsAlwaysOpen(t *testing.T) {
	now := at(t, "UTC", "2026-11-16 00:00")
	for _, s := range []window.Set{{}, parse(t), parse(t, "daily"), parse(t, "daily 05:00-05:00"), parse(t, "Mon-Fri Asia/Tokyo", "Sat,Sun Asia/Tokyo")} {
		if !s.Open(now) || !s.Next(now).IsZero() {
			t.Errorf("open: %v, next change %v; want open without a change", s.Open(now), s.Next(now))
		}
	}
}

func TestZoneIsLocalUnlessGiven(t *testing.T) {
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	s, err := window.Parse([]string{"09:00-10:00"}, tokyo)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Open(at(t, "Asia/Tokyo", "2026-11-16 09:30")) || s.Open(at(t, "UTC", "2026-11-16 09:30")) {
		t.Error("the window is not in the zone given")
	}
}

// changes returns what Next says from a moment on, as open or close with local time.
func changes(s window.Set, from, to time.Time) []string {
	var out []string
	for next := s.Next(from); !next.IsZero() && next.Before(to); next = s.Next(next) {
		word := "close"
		if s.Open(next) {
			word = "open"
		}
		out = append(out, word+" "+next.Format(layout))
	}
	return out
}

// Clocks change in Berlin on 2026-03-29 and 2026-10-25, in Sydney on 2026-10-04 and
// 2026-04-05, on Lord Howe by half an hour, and in Cairo on 2026-04-24 at midnight.
func TestDaylightSaving(t *testing.T) {
	for _, c := range []struct {
		name, window, zone, from, to string
		want                         []string
	}{
		{"begin in the missing hour", "02:30-05:00", "Europe/Berlin", "2026-03-29 00:00", "2026-03-30 00:00",
			[]string{"open 2026-03-29 03:00 +0200", "close 2026-03-29 05:00 +0200"}},
		{"end in the missing hour", "01:00-02:30", "Europe/Berlin", "2026-03-29 00:00", "2026-03-30 00:00",
			[]string{"open 2026-03-29 01:00 +0100", "close 2026-03-29 03:00 +0200"}},
		{"wholly in the missing hour", "02:10-02:50", "Europe/Berlin", "2026-03-29 00:00", "2026-03-30 03:00",
			[]string{"open 2026-03-30 02:10 +0200", "close 2026-03-30 02:50 +0200"}},
		{"the doubled hour is inside twice", "02:00-03:00", "Europe/Berlin", "2026-10-25 00:00", "2026-10-26 00:00",
			[]string{"open 2026-10-25 02:00 +0200", "close 2026-10-25 03:00 +0100"}},
		{"a part of the doubled hour occurs twice", "02:10-02:50", "Europe/Berlin", "2026-10-25 00:00", "2026-10-26 00:00",
			[]string{"open 2026-10-25 02:10 +0200", "close 2026-10-25 02:50 +0200", "open 2026-10-25 02:10 +0100", "close 2026-10-25 02:50 +0100"}},
		{"a night with 23 hours", "19:00-07:00", "Europe/Berlin", "2026-03-28 12:00", "2026-03-29 12:00",
			[]string{"open 2026-03-28 19:00 +0100", "close 2026-03-29 07:00 +0200"}},
		{"begin in the missing hour, south", "02:30-05:00", "Australia/Sydney", "2026-10-04 00:00", "2026-10-05 00:00",
			[]string{"open 2026-10-04 03:00 +1100", "close 2026-10-04 05:00 +1100"}},
		{"the doubled hour is inside twice, south", "02:00-03:00", "Australia/Sydney", "2026-04-05 00:00", "2026-04-06 00:00",
			[]string{"open 2026-04-05 02:00 +1100", "close 2026-04-05 03:00 +1000"}},
		{"a change of half an hour", "02:15-04:00", "Australia/Lord_Howe", "2026-10-04 00:00", "2026-10-05 00:00",
			[]string{"open 2026-10-04 02:30 +1100", "close 2026-10-04 04:00 +1100"}},
		{"midnight is missing", "Fri", "Africa/Cairo", "2026-04-23 12:00", "2026-04-26 00:00",
			[]string{"open 2026-04-24 01:00 +0300", "close 2026-04-25 00:00 +0300"}},
		{"a day is missing", "Fri,Sat", "Pacific/Apia", "2011-12-29 12:00", "2012-01-02 00:00",
			[]string{"open 2011-12-31 00:00 +1400", "close 2012-01-01 00:00 +1400"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parse(t, c.window+" "+c.zone)
			got := changes(s, at(t, c.zone, c.from), at(t, c.zone, c.to))
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("changes\n got %v\nwant %v", got, c.want)
			}
		})
	}
}

// wallClock is Open, said in another way: minute by minute, by the fields of the date.
func wallClock(days map[time.Weekday]bool, begin, end int, t time.Time) bool {
	clock := t.Hour()*60 + t.Minute()
	today, yesterday := days[t.Weekday()], days[(t.Weekday()+6)%7]
	if end > begin {
		return today && begin <= clock && clock < end
	}
	return today && begin <= clock || yesterday && clock < end
}

// Between a moment and its Next nothing changes, at Next it does, and Open is what the
// fields of the date say. The moments are near changes of clocks in many zones.
func TestOpenIsConstantUpToNext(t *testing.T) {
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Sydney", "America/Santiago", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kathmandu", "UTC"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		zone := zones[r.IntN(len(zones))]
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		days := map[time.Weekday]bool{}
		var names []string
		for d := range time.Weekday(7) {
			if r.IntN(3) > 0 || d == 6 && len(names) == 0 {
				days[d] = true
				names = append(names, d.String()[:3])
			}
		}
		begin, end := r.IntN(24*60), r.IntN(24*60)
		spec := fmt.Sprintf("%s %02d:%02d-%02d:%02d %s", strings.Join(names, ","), begin/60, begin%60, end/60, end%60, zone)
		s := parse(t, spec)
		// Half of the moments are within two days of a change of the clocks.
		now := time.Unix(1767225600+r.Int64N(366*86400), r.Int64N(1e9)).In(loc)
		if _, change := now.ZoneBounds(); !change.IsZero() && r.IntN(2) == 0 {
			now = change.Add(time.Duration(r.Int64N(int64(96*time.Hour))) - 48*time.Hour)
		}
		open := s.Open(now)
		if want := wallClock(days, begin, end, now.In(loc)); open != want {
			t.Fatalf("%s: Open(%v) = %v, want %v", spec, now, open, want)
		}
		next := s.Next(now)
		if next.IsZero() {
			if !open || len(names) < 7 || begin != end {
				t.Fatalf("%s: no change after %v", spec, now)
			}
			continue
		}
		if !next.After(now) || s.Open(next) == open {
			t.Fatalf("%s: no change at Next(%v) = %v", spec, now, next)
		}
		for u := now; u.Before(next); u = u.Add(time.Minute) {
			if s.Open(u) != open {
				t.Fatalf("%s: a change before Next(%v) = %v, at %v", spec, now, next, u)
			}
		}
		if s.Open(next.Add(-1)) != open {
			t.Fatalf("%s: a change before Next(%v) = %v", spec, now, next)
		}
	}
}

func TestUnionOfZonesChangesWhereNeitherIsOpen(t *testing.T) {
	s := parse(t, "00:00-12:00 Europe/Berlin", "00:00-12:00 America/New_York", "Sun")
	got := changes(s, at(t, "UTC", "2026-11-16 00:00"), at(t, "UTC", "2026-11-17 23:30"))
	want := []string{"close 2026-11-16 17:00 +0000", "open 2026-11-16 23:00 +0000", "close 2026-11-17 17:00 +0000", "open 2026-11-17 23:00 +0000"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("changes\n got %v\nwant %v", got, want)
	}
}

func TestParseTellsAllFaults(t *testing.T) {
	_, err := window.Parse([]string{"Mon-Fry 19:00-25:00 Europe/Berlim", "", "Sat", "19:00", "24:00-03:00", "Mon 10:00-11:00 UTC please", "Europe/Berlin", "Local"}, time.UTC)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`"Fry" is not a day`, `"25:00" is not a time of day`, `"Europe/Berlim" is not a time zone`,
		`window "": it is empty`, `"19:00" has no end`, `does not begin at 24:00`,
		`"please" is not understood`, `"Europe/Berlin" is not understood`, `"Local" is not a day`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %s:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), `"Sat"`) {
		t.Errorf("the error speaks of a window without faults:\n%v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"Mon-Fri 19:00-07:00 Europe/Berlin", "Sat,Sun", "22:00-06:00", "daily 09:00-17:00 UTC", "-", ",", "0:-", "Mon-", "Mon,,", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		s, err := window.Parse([]string{spec}, time.UTC)
		if err != nil {
			return // rejecting is fine, panicking is not
		}
		now := time.Unix(1767225600, 0)
		if next := s.Next(now); !next.IsZero() && s.Open(next) == s.Open(now) {
			t.Fatalf("%q: no change at %v", spec, next)
		}
	})
}
