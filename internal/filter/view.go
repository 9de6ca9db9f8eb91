// SPDX-License-Identifier: Apache-2.0

package filter

import "github.com/triagemq/triagemq/internal/filter/value"

// View is a message as an expression uses it. [Envelope] is the View for
// messages of the broker.
//
// Values are returned by reference, because copying would be most of the cost
// of a comparison: they do not change during the evaluation.
type View interface {
	// User returns the application property of that name, or nil if the message
	// carries none. A property spelled exactly so wins; otherwise case does not
	// count.
	User(name string) *value.Value

	// System returns a system property. What the sender left out is null; nil
	// means that the property has no value yet (a lock token before the lock),
	// which makes the evaluation fail.
	System(name SystemName) *value.Value

	// NewID returns a fresh random id, for newid(). It comes from outside so
	// that evaluation is repeatable in tests and in replay; false means that
	// there is no source of ids here, which makes the evaluation fail.
	NewID() (id [16]byte, ok bool)
}

// absent is the value of what is not there.
var absent value.Value
