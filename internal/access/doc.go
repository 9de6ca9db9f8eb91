// SPDX-License-Identifier: Apache-2.0

// Package access decides who may do what: shared access rules, the tokens signed
// with their keys, and what a valid token grants.
//
// # Promise
//
// Nothing is granted without a key. A token is accepted only if its signature
// matches one of the two keys of a rule that applies to the resource it names,
// and it has not expired. Signatures and keys are compared in constant time, and
// every failed check reads the same from outside, so that a caller cannot tell a
// wrong key from an unknown rule.
//
// A grant ends with its origin. [Authority.Check] finds this out: a rule, a key
// or an entity that was changed or deleted since grants nothing any more, and
// an entity that was created again under the old name is another one.
//
// A rule of an entity is valid for the entity, its subscriptions, sub-queues
// and $management, and for no other entity whose name begins with its own. A
// token signed by a rule of the namespace is valid at and below the path that
// it names.
//
// # Format
//
// A token is the text that Service Bus clients make:
//
//	SharedAccessSignature sr=<escaped resource>&sig=<escaped signature>&se=<unix seconds>&skn=<rule>
//	signature = base64(HMAC-SHA256(key text, sr as written in the token + "\n" + se))
//
// The rules of a namespace are kept as JSON; see [Rules.Encode].
//
// # Concurrency
//
// A [RuleAuthority] may be used by any number of goroutines. [Rules] is a plain
// value: a RuleAuthority keeps it and never changes it.
//
// # Not here
//
// Files, sockets and clocks: the server reads and writes the bytes, and the time
// is an argument. Which right an operation needs is in one table for all doors,
// in operation.go; what else makes it one's own is known by who offers it.
package access
