// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"strings"
)

// errInvalid is what the faults of a policy unwrap to.
var errInvalid = errors.New("policy: invalid")

// Fault is one error or warning about a policy.
type Fault struct {
	At      string // file:line:column, if known; see Faults.Locate
	Path    string // classes[1].when
	Problem string
}

func (f Fault) Error() string {
	text := f.Problem
	if f.Path != "" {
		text = f.Path + ": " + text
	}
	if f.At != "" {
		text = f.At + ": " + text
	}
	return text
}

// Unwrap makes every Fault an errInvalid.
func (f Fault) Unwrap() error { return errInvalid }

// Faults are the faults of a policy, in the order of its fields: all of them, or the first
// maxFaults.
type Faults []Fault

// maxFaults is how many faults are reported. The author of a policy must not control the
// length of the answer.
const maxFaults = 100

func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes Faults an errInvalid.
func (fs Faults) Unwrap() error { return errInvalid }

// Locate returns the faults with the positions of their paths in a file.
func (fs Faults) Locate(position func(path string) string) Faults {
	located := make(Faults, len(fs))
	for i, f := range fs {
		f.At = position(f.Path)
		located[i] = f
	}
	return located
}

// err returns fs as an error; nil when there is none.
func (fs Faults) err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

func (fs *Faults) addf(path, format string, args ...any) {
	if len(*fs) < maxFaults {
		*fs = append(*fs, Fault{Path: path, Problem: fmt.Sprintf(format, args...)})
	}
}
