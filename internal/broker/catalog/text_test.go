// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"testing"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/filter"
)

// Users know nothing of our packages; what they wrote themselves stays.
func TestTextHasNoPackages(t *testing.T) {
	_, syntax := filter.Parse("a = ", nil)
	for want, err := range map[string]error{
		"no such entity":                                        ErrNotFound,
		`no such entity: queue "queue: a"`:                      fmt.Errorf("%w: queue %q", ErrNotFound, "queue: a"),
		`rule "filter: x": invalid: ` + syntax.Error()[8:]:      fmt.Errorf("rule %q: %w", "filter: x", Invalid(syntax)),
		"invalid: policy: is one":                               Invalid(entity.Faults{{Field: "policy", Problem: "is one"}}),
		"message is too large: not allowed\nlock lost":          errors.Join(fmt.Errorf("%w: %w", ErrTooLarge, ErrNotAllowed), ErrLockLost),
		`class "a" is turned away for now: b; retry after 1.0s`: &ThrottledError{Class: "a", Reason: "b", RetryAfter: 1},
	} {
		if got := Text(err); got != want {
			t.Errorf("%q reads as %q, want %q", err, got, want)
		}
		if got := Text(errors.New(want)); got != want {
			t.Errorf("what is plain becomes %q, want %q", got, want)
		}
	}
}
