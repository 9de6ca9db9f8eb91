// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
)

// maxInteger is the largest number that every JSON implementation keeps exact.
const maxInteger = 1<<53 - 1

// longest is the longest time that a policy may contain.
const longest = 366 * 24 * time.Hour

// reader converts a tree of JSON into a policy. It continues after a fault, so that all
// are reported at once.
type reader struct {
	faults Faults
	stored bool // it was accepted before, and limits are not checked
}

// node is a part of the tree and its path.
type node struct {
	path string
	any
}

// field is a name that an object may have and what to do with its value.
type field struct {
	name string
	read func(node)
}

// fields are in the order in which their faults are reported.
type fields []field

func (v node) isObject() bool {
	_, ok := v.any.(map[string]any)
	return ok
}

// earlierNames are the former names of fields in stored policies, by their present names.
// They stay readable.
var earlierNames = map[string]string{
	"levelOrder":   "within",
	"interval":     "every",
	"maxLevel":     "upTo",
	"deliveryRate": "pace",
	"maxMessages":  "limit",
	"maxBytes":     "bytes",
	"overflow":     "shed",
	"expectedRate": "expected",
	"target":       "share",
}

// earlierWords are former spellings of values.
var earlierWords = map[string]string{"refuse": "reject"}

// child returns a field of an object, if it is there and not null, with the path that it
// was written with.
func (v node) child(name string) (node, bool) {
	o, _ := v.any.(map[string]any)
	c, ok := o[name]
	if earlier := earlierNames[name]; !ok && earlier != "" {
		if c, ok = o[earlier]; ok {
			name = earlier
		}
	}
	return node{join(v.path, name), c}, ok && c != nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

func (r *reader) faultf(v node, format string, args ...any) { r.faults.addf(v.path, format, args...) }

// object reads the known fields of an object that are there.
func (r *reader) object(v node, known fields) {
	o, ok := v.any.(map[string]any)
	if !ok {
		if v.any != nil {
			r.faultf(v, "must be an object")
		}
		return
	}
	for _, f := range known {
		if c, ok := v.child(f.name); ok {
			f.read(c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if slices.ContainsFunc(known, func(f field) bool { return f.name == name }) {
			continue
		}
		at := node{join(v.path, name), nil}
		renamed := slices.IndexFunc(known, func(f field) bool { return earlierNames[f.name] == name })
		switch {
		case renamed < 0:
			r.faultf(at, "unknown; %s", known.suggestion(name))
		case o[known[renamed].name] != nil:
			r.faultf(at, "is the earlier name of %s, which is there too", known[renamed].name)
		}
	}
}

// suggestion names the most similar field, else all fields.
func (fs fields) suggestion(name string) string {
	var names []string
	for _, f := range fs {
		if strings.EqualFold(f.name, name) || len(name) > 2 && strings.HasPrefix(f.name, name) || strings.EqualFold(f.name+"s", name) {
			return "did you mean " + f.name + "?"
		}
		names = append(names, f.name)
	}
	return "known are " + strings.Join(names, ", ")
}

func (r *reader) list(v node, read func(node)) {
	items, ok := v.any.([]any)
	if !ok {
		r.faultf(v, "must be a list")
		return
	}
	for i, item := range items {
		at := node{index(v.path, i), item}
		if !at.isObject() {
			r.faultf(at, "must be an object")
			continue
		}
		read(at)
	}
}

func (r *reader) text(v node) string {
	s, ok := v.any.(string)
	if !ok {
		r.faultf(v, "must be text")
	}
	return s
}

// scalar returns a string or a number as it was written. YAML reads 30 and 30s as
// different types; a policy accepts both.
func (r *reader) scalar(v node, what string) (string, bool) {
	switch s := v.any.(type) {
	case string:
		return s, true
	case json.Number:
		return s.String(), true
	}
	r.faultf(v, "must be %s", what)
	return "", false
}

// word returns the index of a word in a list.
func (r *reader) word(v node, words []string) int {
	text := r.text(v)
	i := slices.Index(words, text)
	if now, ok := earlierWords[text]; ok && i < 0 {
		i = slices.Index(words, now)
	}
	if i < 0 {
		if s, ok := v.any.(string); ok {
			r.faultf(v, "%q is not one of %s", s, strings.Join(words, ", "))
		}
		return 0
	}
	return i
}

func (r *reader) number(v node) float64 {
	n, ok := v.any.(json.Number)
	f, err := n.Float64()
	if !ok || err != nil || math.IsInf(f, 0) {
		r.faultf(v, "must be a number")
		return math.NaN()
	}
	return f
}

func (r *reader) integer(v node, least, most int64) int64 {
	number, ok := v.any.(json.Number)
	if !ok {
		r.faultf(v, "must be a number")
		return 0
	}
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if f, ferr := number.Float64(); err != nil && ferr == nil && f == math.Trunc(f) && math.Abs(f) <= maxInteger {
		n, err = int64(f), nil // 1e6
	}
	if err != nil || n < least || n > most {
		r.faultf(v, "%s is not a whole number in %d..%d", number, least, most)
		return 0
	}
	return n
}

// weight rejects zero: a class that is never served is useless, and a zero field means
// unset.
func (r *reader) weight(v node) uint32 { return uint32(r.integer(v, 1, 1e6)) }

func (r *reader) duration(v node) time.Duration {
	text, ok := r.scalar(v, "a duration such as 30s, 5m or 1h30m")
	if !ok {
		return 1 // avoids a second fault about zero
	}
	d, err := entity.ParseDuration(text)
	if err == nil && d.Std() > longest {
		err = fmt.Errorf("%v is longer than a year", d)
	}
	if err != nil {
		r.faultf(v, "%v", err)
		return 1
	}
	return d.Std()
}

func (r *reader) level(v node) (uint8, bool) {
	text, ok := r.scalar(v, "a level")
	if !ok {
		return 0, true
	}
	l, ok := ParseLevel(text)
	if !ok {
		r.faultf(v, "%q is not a level: 0..255, critical, high, normal, low or background", text)
	}
	return l, true
}

func (r *reader) rate(v node) Rate {
	text, ok := r.scalar(v, "a rate such as 500/s or 30/m")
	if !ok {
		return Rate{}
	}
	rate, err := parseRate(text)
	if err == nil && rate.Count <= 0 {
		err = fmt.Errorf("rate %q must be greater than zero", text)
	}
	if err != nil {
		r.faultf(v, "%v", err)
	}
	return rate
}

// sizeUnits are tried in this order: longer names first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1}, {"", 1},
}

func (r *reader) size(v node) int64 {
	text, ok := r.scalar(v, "a size such as 4096 or 64MiB")
	if !ok {
		return 0
	}
	for _, unit := range sizeUnits {
		number, ok := strings.CutSuffix(strings.ToLower(strings.TrimSpace(text)), unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 1 || n > math.MaxInt64/unit.bytes {
			break
		}
		return n * unit.bytes
	}
	r.faultf(v, "%q is not a size such as 4096 or 64MiB", text)
	return 0
}

// keyText returns a fair key as the expression returns it: a number may be written as
// one.
func (r *reader) keyText(v node) string {
	s, _ := r.scalar(v, "text")
	return s
}

// address checks the syntax of an address; it is resolved when it is used.
func (r *reader) address(v node) string {
	s := r.text(v)
	_, rest, ok := strings.Cut(s, "://")
	scheme := strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
	if _, isText := v.any.(string); isText && (!ok || !scheme || rest == "" || rest[0] == '/' || strings.ContainsAny(s, " \t\r\n")) {
		r.faultf(v, "%q is not an address such as https://example.com/hook", s)
	}
	return s
}
