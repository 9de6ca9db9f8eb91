// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/filter"
)

// packageName finds the name of a package where a sentence, or a part of one, begins.
var packageName = regexp.MustCompile(`(?m)(^|: )(access|broker|caller|codec|endpoint|entity|filter|frame|journal|limits|message|policy|queue|servicebus|shard|wal): `)

// The text for a client contains no names of packages, however the error was
// wrapped.
func TestProblemsNameNoPackages(t *testing.T) {
	_, syntax := filter.Parse("a = ", nil)
	for _, k := range known {
		for _, err := range []error{
			k.err,
			fmt.Errorf("%w: queue \"a\"", k.err),
			fmt.Errorf("rule \"r\": %w: %w", k.err, syntax),
			fmt.Errorf("rule \"r\": %w: %w", syntax, k.err),
			errors.Join(k.err, broker.ErrDisabled),
		} {
			if p, _ := Of(err); packageName.MatchString(p.Message) {
				t.Errorf("%q is reported as %q", err, p.Message)
			}
		}
	}
	// What the user wrote stays.
	if p, _ := Of(fmt.Errorf("%w: queue %q", broker.ErrNotFound, "a: queue: b")); p.Message != `no such entity: queue "a: queue: b"` {
		t.Errorf("reported %q", p.Message)
	}
}
