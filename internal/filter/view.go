// SPDX-License-Identifier: Apache-2.0

package filter

// View is a message as an expression sees it. [Message] is the one for messages
// of the broker.
type View interface {
	// User returns the application property of that name. A property spelled
	// exactly so wins; otherwise case does not count. It reports false when the
	// message carries none.
	User(name string) (Value, bool)

	// System returns a system property. What the sender left out is null; false
	// means that the property has no value yet (a lock token before the lock),
	// which makes the evaluation fail.
	System(name SystemName) (Value, bool)

	// NewID returns a fresh random id, for newid(). It comes from outside so
	// that evaluation is repeatable in tests and in replay.
	NewID() [16]byte
}
