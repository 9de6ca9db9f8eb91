// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"errors"
	"fmt"
)

// errFixed means that a property of something that exists cannot change.
var errFixed = errors.New("entity: property cannot be changed")

// UpdateError is one change that is not allowed. Its text is the text of
// Service Bus, on which users of the administration clients rely.
type UpdateError struct {
	Property string // as Service Bus spells it: RequiresSession
	Text     string
}

func (e *UpdateError) Error() string { return e.Text }

// Unwrap makes every UpdateError an errFixed.
func (e *UpdateError) Unwrap() error { return errFixed }

// update gathers the forbidden changes of one entity.
type update struct {
	kind string // Queue, Topic, Subscription
	errs []error
}

func (u *update) refuse(property, text string) {
	u.errs = append(u.errs, &UpdateError{property, text})
}

// fixed rejects a change of a property that is set at creation.
func fixed[T comparable](u *update, property string, old, next T) {
	if old != next {
		u.refuse(property, fmt.Sprintf("The value for the %s property of an existing %s cannot be changed. ", property, u.kind))
	}
}

// name rejects another name; another case is the same name.
func (u *update) name(old, next string) { fixed(u, "Name", Key(old), Key(next)) }

func (u *update) partitioning(old, next bool) {
	if old != next {
		u.refuse("EnablePartitioning", fmt.Sprintf("Partitioning cannot be changed for %s. ", u.kind))
	}
}

func (u *update) err() error { return errors.Join(u.errs...) }
