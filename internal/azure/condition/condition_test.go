// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/triagemq/triagemq/internal/azure/condition"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/eventhubs"
	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/servicebus"
)

// packageName finds the name of a package where a sentence, or a part of one, begins.
var packageName = regexp.MustCompile(`(?m)(^|: )(access|azure|broker|caller|codec|endpoint|entity|filter|frame|journal|limits|message|policy|queue|servicebus|shard|stream|streamserver|wal): `)

// What a peer is told has no names of packages in it, whatever the error was wrapped
// in on its way.
func TestErrorsNameNoPackages(t *testing.T) {
	own := append(servicebus.New(nil).Conditions(), eventhubs.New(nil).Conditions()...)
	table := condition.NewTable(own)
	told := func(err error) string {
		f, _ := table.Failure(err, func() string { return "sb://host/a" })
		return f.Description
	}
	_, syntax := filter.Parse("a = ", nil)
	for _, known := range append(slices.Clone(own), condition.Shared...) {
		if known.Err == nil {
			continue
		}
		for _, err := range []error{
			known.Err,
			fmt.Errorf("%w: queue \"a\"", known.Err),
			fmt.Errorf("rule \"r\": %w: %w", known.Err, syntax),
			fmt.Errorf("rule \"r\": %w: %w", syntax, known.Err),
			errors.Join(known.Err, broker.ErrDisabled),
		} {
			if text := told(err); packageName.MatchString(text) {
				t.Errorf("%q is told as %q", err, text)
			}
		}
	}
	if text := told(&broker.ThrottledError{Class: "c", Reason: "full"}); packageName.MatchString(text) {
		t.Errorf("a throttled sender is told %q", text)
	}
}

// A personality's own conditions are more special than the shared ones: an error may be
// both.
func TestOwnConditionsComeFirst(t *testing.T) {
	special := fmt.Errorf("%w: special", broker.ErrDiskFull)
	url := func() string { return "" }
	f, planned := condition.NewTable([]condition.Condition{{Err: special, Name: "toy:special", Status: 418}}).Failure(special, url)
	if !planned || f.Condition != "toy:special" || f.Status != 418 {
		t.Errorf("told as %v with status %d, planned %v", f.Error, f.Status, planned)
	}
	f, planned = condition.NewTable().Failure(errors.New("open /etc/secret: no"), url)
	if planned || f.Status != condition.StatusInternal || f.Description != "internal error; see the server log" {
		t.Errorf("an error nobody planned for is told as %v with status %d", f.Error, f.Status)
	}
}
