// SPDX-License-Identifier: Apache-2.0

package errtext_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/broker/catalog/errtext"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/filter"
)

// Users know nothing of our packages; what they wrote themselves stays.
func TestTextHasNoPackages(t *testing.T) {
	_, syntax := filter.Parse("a = ", nil)
	for want, err := range map[string]error{
		"no such entity":                                   catalog.ErrNotFound,
		`no such entity: queue "queue: a"`:                 fmt.Errorf("%w: queue %q", catalog.ErrNotFound, "queue: a"),
		`rule "filter: x": invalid: ` + syntax.Error()[8:]: fmt.Errorf("rule %q: %w", "filter: x", catalog.Invalid(syntax)),
		"invalid: policy: is one":                          catalog.Invalid(entity.Faults{{Field: "policy", Problem: "is one"}}),
		"message is too large: not allowed\nlock lost":     errors.Join(fmt.Errorf("%w: %w", catalog.ErrTooLarge, catalog.ErrNotAllowed), catalog.ErrLockLost),
		`class "a" is throttled: b; retry after 1.0s`:      &catalog.ThrottledError{Class: "a", Reason: "b", RetryAfter: 1},
	} {
		if got := errtext.Text(err); got != want {
			t.Errorf("%q reads as %q, want %q", err, got, want)
		}
		if got := errtext.Text(errors.New(want)); got != want {
			t.Errorf("what is plain becomes %q, want %q", got, want)
		}
	}
}
