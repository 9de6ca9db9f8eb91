// SPDX-License-Identifier: Apache-2.0

package filter

import "github.com/triagemq/triagemq/internal/filter/value"

// The work of one evaluation is counted in steps and limited by [parseLimits.Steps],
// because the message, which may be large and is untrusted, determines how much
// work a short expression is. A step takes some twelve nanoseconds at most.
//
//	every operation of the expression           1, counted when it is parsed
//	LIKE                                        1 for each character compared with a part that has _ in it,
//	                                            1 for each 16 bytes searched for other parts;
//	                                            1 for each byte of a pattern that is computed
//	=, <, IN and so on with long texts          1 for each 16 bytes
//	+ of texts                                  1 for each byte
//	newid(), property(), and a property that
//	the evaluation cannot cache                 64
//
// Comparing short texts is part of the operation: there are at most as many as the
// expression has letters.
const (
	defaultSteps   = 1 << 18
	bytesPerStep   = 16
	shortText      = 256
	stepsPerLookup = 64
	stepsPerID     = 64
)

// stepsPerFailure is what a rule that fails takes beside its steps. It is counted for the caller
// and not for the rules after it.
const stepsPerFailure = 32

// The rules of a set share MessageSteps for one message, and so do the actions, so that a
// subscription with thousands of expensive rules does not cost more. When they are used up,
// a rule has fewSteps: far more than a rule over short properties needs, so
// that only expensive rules fail.
const (
	MessageSteps = 4 * defaultSteps
	fewSteps     = 1 << 10
)

const tooManySteps = "it takes more steps than an evaluation may"

// spend subtracts n steps from those that are left and reports whether there
// were enough.
func (e *env) spend(n int) bool {
	e.steps -= n
	return e.steps >= 0
}

// afford is spend that makes the evaluation fail at node n.
func (e *env) afford(n *node, steps int) bool {
	if e.spend(steps) {
		return true
	}
	e.fail(n, tooManySteps)
	return false
}

// affordText is afford for the comparison of two texts, which may differ only at
// the end of the shorter.
func (e *env) affordText(n *node, a, b *value.Value) bool {
	return e.afford(n, min(len(a.Str()), len(b.Str()))/bytesPerStep)
}

// chargeLookup charges the steps of the lookup of a property that is not
// cached.
func (e *env) chargeLookup(name *Name) {
	if !e.spend(stepsPerLookup) && e.err == nil {
		e.err = &evalError{part: *name, Reason: tooManySteps}
	}
}

// affordList is afford for the search of a long text in a list: in the table of
// a list of constants, or in each element.
func (e *env) affordList(n *node, left *value.Value) bool {
	times := 1
	if n.set == nil {
		times = len(n.kids) - 1
	}
	return e.afford(n, times*(len(left.Str())/bytesPerStep))
}
