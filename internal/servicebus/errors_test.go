// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"testing"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/filter"
)

// packageName finds the name of a package where a sentence, or a part of one, begins.
var packageName = regexp.MustCompile(`(?m)(^|: )(access|broker|caller|codec|endpoint|entity|filter|frame|journal|limits|message|policy|queue|servicebus|shard|wal): `)

// What a peer is told has no names of packages in it, whatever the error was wrapped
// in on its way.
func TestErrorsNameNoPackages(t *testing.T) {
	c := &conn{log: slog.New(slog.DiscardHandler), svc: &Service{}}
	_, syntax := filter.Parse("a = ", nil)
	for _, known := range conditions {
		for _, err := range []error{
			known.err,
			fmt.Errorf("%w: queue \"a\"", known.err),
			fmt.Errorf("rule \"r\": %w: %w", known.err, syntax),
			fmt.Errorf("rule \"r\": %w: %w", syntax, known.err),
			errors.Join(known.err, broker.ErrDisabled),
		} {
			if text := c.failureOf("a", err).Description; packageName.MatchString(text) {
				t.Errorf("%q is told as %q", err, text)
			}
		}
	}
	if text := throttled(&broker.ThrottledError{Class: "c", Reason: "full"}).Description; packageName.MatchString(text) {
		t.Errorf("a throttled sender is told %q", text)
	}
}
