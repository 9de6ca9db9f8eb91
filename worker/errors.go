// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/backoff"
)

// decision is an error by which a handler says what becomes of the message.
type decision struct {
	outcome Outcome
	after   time.Duration // of Failed
	reason  string        // of DeadLettered
	err     error         // may be nil
}

func (d *decision) Error() string {
	text := "retry after " + d.after.String()
	switch d.outcome {
	case DeadLettered:
		text = "dead letter: " + d.reason
	case Discarded:
		text = "discarded"
	}
	if d.err != nil {
		text += ": " + d.err.Error()
	}
	return "worker: " + text
}

// Unwrap returns the handler's own error.
func (d *decision) Unwrap() error { return d.err }

// RetryAfter has the message delivered again after d; it counts as a failure. err may
// be nil.
func RetryAfter(d time.Duration, err error) error {
	return &decision{outcome: Failed, after: max(d, 0), err: err}
}

// DeadLetter has the message moved to the dead letter queue with a reason. The text of
// err, which may be nil, is the description.
func DeadLetter(reason string, err error) error {
	return &decision{outcome: DeadLettered, reason: reason, err: err}
}

// Discard completes the message although err happened.
func Discard(err error) error { return &decision{outcome: Discarded, err: err} }

// Backoff says how long to wait after the given number of failures, from 1.
type Backoff func(failures int) time.Duration

// Constant waits always the same.
func Constant(d time.Duration) Backoff { return func(int) time.Duration { return d } }

// Exponential waits from first to most, twice as long each time, with jitter of a quarter.
func Exponential(first, most time.Duration) Backoff {
	return backoff.Exponential(first, most)
}

// asDecision returns the decision in err, or nil.
func asDecision(err error) *decision {
	d, _ := errors.AsType[*decision](err)
	return d
}
