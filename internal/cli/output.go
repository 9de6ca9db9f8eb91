// SPDX-License-Identifier: Apache-2.0

package cli

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

// Table is rows under a heading, aligned. A column whose heading begins with a
// hash is of numbers, which end below each other.
type Table struct{ Rows [][]string }

func NewTable(heading ...string) *Table { return &Table{Rows: [][]string{heading}} }

// Add adds a row; what is not text is printed as it is.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = OneLine(fmt.Sprint(c))
	}
	t.Rows = append(t.Rows, row)
}

// Drop leaves a column out.
func (t *Table) Drop(heading string) {
	if i := slices.Index(t.Rows[0], heading); i >= 0 {
		for n := range t.Rows {
			t.Rows[n] = slices.Delete(t.Rows[n], i, i+1)
		}
	}
}

func (t *Table) Print(w io.Writer) {
	widths := make([]int, len(t.Rows[0]))
	numbers := make([]bool, len(widths))
	for i, h := range t.Rows[0] {
		t.Rows[0][i], numbers[i] = strings.CutPrefix(h, "#")
	}
	for _, row := range t.Rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.Rows {
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

// OneLine makes text that came from elsewhere harmless to a terminal.
func OneLine(s string) string {
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

// Short cuts text to n characters.
func Short(s string, n int) string {
	s = OneLine(s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// AnswerJSON writes a value for programs.
func AnswerJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// JSONLine writes a value on a line of its own, for programs that read as it
// comes.
func JSONLine(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// Count is a number with its noun: 1 message, 2 messages.
func Count[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// BytesText is a size for people.
func BytesText(n int64) string {
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, unit := float64(n)/(1<<10), 0
	for value >= 1024 && unit < 3 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %s", value, [...]string{"KiB", "MiB", "GiB", "TiB"}[unit])
}

// TimeText is a time of day for people, with its date.
func TimeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05.000")
}

// Progress tells how far a long operation is, once a second, on a line that it
// rewrites if there is a terminal.
type Progress struct {
	W     io.Writer
	end   string // of each report
	start time.Time
	next  time.Time
	shown bool
}

// progressEvery is also how long an operation stays silent: short ones need no
// report.
const progressEvery = time.Second

func (s Streams) Progress(now time.Time) *Progress {
	p := &Progress{W: s.Err, end: "\n", start: now, next: now.Add(progressEvery)}
	if f, ok := s.Err.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.end = "\r"
		}
	}
	return p
}

// At reports that done of total are done, total being zero if nobody knows.
func (p *Progress) At(now time.Time, done, total int) {
	if now.Before(p.next) {
		return
	}
	p.next, p.shown = now.Add(progressEvery), true
	rate := float64(done) / now.Sub(p.start).Seconds()
	if total > 0 {
		fmt.Fprintf(p.W, "%8d of %d  %3d%%  %.0f/s %s", done, total, done*100/total, rate, p.end)
		return
	}
	fmt.Fprintf(p.W, "%8d  %.0f/s %s", done, rate, p.end)
}

// Finish leaves the line.
func (p *Progress) Finish() {
	if p.shown && p.end == "\r" {
		fmt.Fprintln(p.W)
	}
}

// BodyColumn is the width of a column with text that can be long.
const BodyColumn = 60
