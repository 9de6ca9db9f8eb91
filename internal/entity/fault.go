// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Fault is one thing wrong with a definition.
type Fault struct {
	// Field is the property at fault, as a path: lockDuration,
	// rules[2].filter.sql. It is empty when no single property is.
	Field   string
	Problem string
}

func (f Fault) Error() string {
	if f.Field == "" {
		return f.Problem
	}
	return f.Field + ": " + f.Problem
}

// Faults is everything wrong with a definition, in the order of its properties.
// Validate returns it as an error; errors.AsType gets it back for callers that
// know where each property was written. There are at most [MaxFaults].
type Faults []Fault

// MaxFaults is how many faults of one definition are reported. More are not
// useful, and the sender of a definition must not control the length of the
// answer.
const MaxFaults = 100

func (fs Faults) full() bool { return len(fs) >= MaxFaults }

func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// err is fs as an error, nil when there is none.
func (fs Faults) err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

// Reason returns the text of an error of this package without the sentinels
// that it wraps: the author of a definition does not need them.
func Reason(err error) string { return sentinels.Replace(err.Error()) }

var sentinels = strings.NewReplacer(ErrName.Error()+": ", "", ErrPath.Error()+": ", "", ErrValue.Error()+": ", "")

func (fs *Faults) addf(field, format string, args ...any) {
	if !fs.full() {
		*fs = append(*fs, Fault{field, fmt.Sprintf(format, args...)})
	}
}

// name adds the fault that check finds in a name, if any.
func (fs *Faults) name(field, name string, check func(string) error) {
	if name == "" {
		fs.addf(field, "missing")
		return
	}
	if err := check(name); err != nil {
		fs.addf(field, "%s", Reason(err))
	}
}

func (fs *Faults) duration(field string, d, least, most Duration) {
	if d < least || d > most {
		fs.addf(field, "%v is outside %v..%v", d, least, most)
	}
}

func (fs *Faults) number(field string, n, least, most int64) {
	if n < least || n > most {
		fs.addf(field, "%d is outside %d..%d", n, least, most)
	}
}

// length adds a fault for a text of more than most characters.
func (fs *Faults) length(field, text string, most int) {
	if n := utf8.RuneCountInString(text); n > most {
		fs.addf(field, "%d characters, at most %d are allowed", n, most)
	}
}

// nested adds the faults of a part, with the path of the part in front.
func (fs *Faults) nested(place string, part Faults) {
	for _, f := range part[:min(len(part), MaxFaults-len(*fs))] {
		*fs = append(*fs, Fault{joinField(place, f.Field), f.Problem})
	}
}

func joinField(place, field string) string {
	if field == "" || field[0] == '[' {
		return place + field
	}
	return place + "." + field
}
