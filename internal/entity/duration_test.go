// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"encoding/json"
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30s":                     30 * time.Second,
		"1h30m":                   90 * time.Minute,
		"14d":                     14 * 24 * time.Hour,
		"1d12h":                   36 * time.Hour,
		"1.5d":                    36 * time.Hour,
		"250ms":                   250 * time.Millisecond,
		" 5m ":                    5 * time.Minute,
		"PT1M":                    time.Minute,
		"pt1m":                    time.Minute,
		"PT1M30.5S":               90*time.Second + 500*time.Millisecond,
		"PT0,5S":                  500 * time.Millisecond,
		"P14D":                    14 * 24 * time.Hour,
		"P1DT2H":                  26 * time.Hour,
		"P1W":                     7 * 24 * time.Hour,
		"P1Y":                     365 * 24 * time.Hour,
		"P1M":                     30 * 24 * time.Hour,
		"PT0.1234567S":            123456700,
		"PT0S":                    0,
		"forever":                 Forever.Std(),
		isoForever:                Forever.Std(),
		"P999999999999999999999D": Forever.Std(),
	} {
		got, err := ParseDuration(text)
		if err != nil || got.Std() != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestParseDurationRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "5", "m", "-5m", "+5m", "-PT5M", "P", "PT", "P1", "PT1", "P1H", "PT1D", "PT1M1H",
		"PT1S1S", "PTS", "PT.S", "PT1.S", "PT-1S", "P1DT", "d", "1dd", "1d-2h", "1h1d", "00:05:00",
	} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", text, got)
		}
	}
}

func TestDurationForms(t *testing.T) {
	for d, want := range map[Duration]struct{ short, iso string }{
		0:                                    {"0s", "PT0S"},
		Duration(30 * time.Second):           {"30s", "PT30S"},
		Duration(5 * time.Minute):            {"5m", "PT5M"},
		Duration(90 * time.Minute):           {"1h30m", "PT1H30M"},
		Duration(time.Hour):                  {"1h", "PT1H"},
		Duration(time.Hour + 10*time.Second): {"1h0m10s", "PT1H10S"},
		14 * day:                             {"14d", "P14D"},
		day + Duration(time.Hour):            {"25h", "P1DT1H"},
		Duration(1500 * time.Millisecond):    {"1.5s", "PT1.5S"},
		Duration(20 * time.Second):           {"20s", "PT20S"},
		Forever:                              {"forever", "P10675199DT2H48M5.4775807S"},
	} {
		if got := d.String(); got != want.short {
			t.Errorf("(%d).String() = %q, want %q", d, got, want.short)
		}
		if got := d.ISO(); got != want.iso {
			t.Errorf("(%d).ISO() = %q, want %q", d, got, want.iso)
		}
	}
}

func TestDurationInJSON(t *testing.T) {
	var v struct{ D Duration }
	if err := json.Unmarshal([]byte(`{"D":"PT1M30S"}`), &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if got, want := string(out), `{"D":"1m30s"}`; err != nil || got != want {
		t.Errorf("re-encoded as %s, %v, want %s", got, err, want)
	}
	if err := json.Unmarshal([]byte(`{"D":"soon"}`), &v); err == nil {
		t.Error("soon was accepted as a duration")
	}
}

func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"5m", "1h30m", "PT1M", isoForever, "forever", "P1Y2M3W4DT5H6M7.8S", "1.5d", "1d2h", "0s", "1ns"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			return // rejecting is fine, panicking is not
		}
		if d < 0 {
			t.Fatalf("ParseDuration(%q) = %d, negative", text, d)
		}
		for _, form := range []string{d.String(), d.ISO()} {
			if again, err := ParseDuration(form); err != nil || again != d {
				t.Fatalf("round trip: %q -> %d -> %q -> %d, %v", text, d, form, again, err)
			}
		}
	})
}
