// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// table is rows under a heading, aligned. A column whose heading begins with a
// hash is of numbers, which end below each other.
type table struct{ rows [][]string }

func newTable(heading ...string) *table { return &table{rows: [][]string{heading}} }

// add adds a row; what is not text is printed as it is.
func (t *table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = oneLine(fmt.Sprint(c))
	}
	t.rows = append(t.rows, row)
}

// drop leaves a column out.
func (t *table) drop(heading string) {
	if i := slices.Index(t.rows[0], heading); i >= 0 {
		for n := range t.rows {
			t.rows[n] = slices.Delete(t.rows[n], i, i+1)
		}
	}
}

func (t *table) print(w io.Writer) {
	widths := make([]int, len(t.rows[0]))
	numbers := make([]bool, len(widths))
	for i, h := range t.rows[0] {
		t.rows[0][i], numbers[i] = strings.CutPrefix(h, "#")
	}
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.rows {
		var b strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if numbers[i] {
				cell, pad = pad+cell, ""
			}
			b.WriteString(cell + pad + "  ")
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// oneLine makes text that came from elsewhere harmless to a terminal.
func oneLine(s string) string {
	if strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unprintable(r) {
			return '·'
		}
		return r
	}, strings.ReplaceAll(s, "\n", "⏎"))
}

func unprintable(r rune) bool { return !strconv.IsPrint(r) }

// short cuts text to n characters.
func short(s string, n int) string {
	s = oneLine(s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// answerJSON writes a value for programs.
func answerJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// jsonLine writes a value on a line of its own, for programs that read as it
// comes.
func jsonLine(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// count is a number with its noun: 1 message, 2 messages.
func count[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// bytesText is a size for people.
func bytesText(n int64) string {
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, unit := float64(n)/(1<<10), 0
	for value >= 1024 && unit < 3 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %s", value, [...]string{"KiB", "MiB", "GiB", "TiB"}[unit])
}

// timeText is a time of day for people, with its date.
func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05.000")
}

// progress tells how far a long operation is, once a second, on a line that it
// rewrites if there is a terminal.
type progress struct {
	w     io.Writer
	end   string // of each report
	start time.Time
	next  time.Time
	shown bool
}

// progressEvery is also how long an operation stays silent: short ones need no
// report.
const progressEvery = time.Second

func (s streams) progress(now time.Time) *progress {
	p := &progress{w: s.err, end: "\n", start: now, next: now.Add(progressEvery)}
	if f, ok := s.err.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.end = "\r"
		}
	}
	return p
}

// at reports that done of total are done, total being zero if nobody knows.
func (p *progress) at(now time.Time, done, total int) {
	if now.Before(p.next) {
		return
	}
	p.next, p.shown = now.Add(progressEvery), true
	rate := float64(done) / now.Sub(p.start).Seconds()
	if total > 0 {
		fmt.Fprintf(p.w, "%8d of %d  %3d%%  %.0f/s %s", done, total, done*100/total, rate, p.end)
		return
	}
	fmt.Fprintf(p.w, "%8d  %.0f/s %s", done, rate, p.end)
}

// finish leaves the line.
func (p *progress) finish() {
	if p.shown && p.end == "\r" {
		fmt.Fprintln(p.w)
	}
}
