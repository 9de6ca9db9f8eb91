// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/entity"
)

// errInvalid means that a configuration has faults.
var errInvalid = errors.New("config: invalid")

// Fault is one thing wrong with a configuration.
type Fault struct {
	File   string // empty when it was not written in a file
	Line   int    // from 1; zero if unknown
	Column int    // from 1
	// Path is what is at fault: queues[0].lockDuration.
	Path    string
	Problem string
}

func (f Fault) Error() string {
	var b strings.Builder
	if f.Line > 0 {
		fmt.Fprintf(&b, "%s:%d:%d: ", f.File, f.Line, f.Column)
	} else if f.File != "" {
		b.WriteString(f.File + ": ")
	}
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	return b.String() + f.Problem
}

// Unwrap makes every Fault an errInvalid.
func (f Fault) Unwrap() error { return errInvalid }

// Faults are all faults of a configuration, in the order of the file.
type Faults []Fault

func (fs Faults) Error() string {
	// Packages that check the contents, such as policies, add their faults at the
	// end.
	lines := make([]string, 0, len(fs))
	for _, f := range slices.SortedStableFunc(slices.Values(fs), byPlace) {
		lines = append(lines, f.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes Faults an errInvalid.
func (fs Faults) Unwrap() error { return errInvalid }

// err returns fs, sorted, as an error; nil when there is none.
func (fs Faults) err() error {
	if len(fs) == 0 {
		return nil
	}
	slices.SortStableFunc(fs, byPlace)
	return fs
}

func byPlace(a, b Fault) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// source records the position of each value in a file.
type source struct {
	file string
	at   map[string]position // by path
}

type position struct{ line, column int }

// fault returns a fault of the value at path. If the file has no such value, the
// fault is where the nearest thing around it was written.
func (s source) fault(path, problem string) Fault {
	f := Fault{File: s.file, Path: path, Problem: problem}
	for around := path; ; around = outer(around) {
		if p, ok := s.at[around]; ok {
			f.Line, f.Column = p.line, p.column
			return f
		}
		if around == "" {
			return f
		}
	}
}

// outer cuts the last step off a path.
func outer(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// join adds a step, or several, to a path.
func join(path, step string) string {
	if path == "" || step == "" || step[0] == '[' {
		return path + step
	}
	return path + "." + step
}

// Fault returns a fault that another package found in c, with its position in
// the file. A path is made of the file's keys and of positions in its lists:
// the first class of the policy of the first queue is
// queues[0].policy.classes[0].
func (c Config) Fault(path, problem string) Fault { return c.source.fault(path, problem) }

// entityFaults adds positions to the faults that Validate found in the entity
// at path.
func (s source) entityFaults(path string, err error) Faults {
	if err == nil {
		return nil
	}
	found, ok := errors.AsType[entity.Faults](err)
	if !ok {
		return Faults{s.fault(path, err.Error())}
	}
	var fs Faults
	for _, f := range found {
		fs = append(fs, s.fault(join(path, f.Field), f.Problem))
	}
	return fs
}
