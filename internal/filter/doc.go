// SPDX-License-Identifier: Apache-2.0

// Package filter decides which messages a rule matches, and what a rule
// changes.
//
// It contains the SQL language of Service Bus rules (conditions and actions),
// the faster correlation filters, and the compiled set of all rules of one
// topic. The same language chooses priority classes and fair keys.
//
// # Promise
//
//   - [Parse] either returns an expression that can be evaluated against any
//     message, or a [*syntaxError] that says where the error is, what was
//     found there and what was expected. It never panics and never recurses
//     deeper than [parseLimits.Depth].
//   - (*Expr).String is a canonical form: it parses again, to an expression with
//     the same String and the same result for every message.
//   - The work of one evaluation is limited for every message ([parseLimits.Steps]): a
//     few milliseconds. More is an evaluation error.
//   - An action sets no property of more than limits.Property bytes, and all its
//     changes together have no more than limits.Properties; more is an evaluation
//     error.
//   - Match does not allocate, with three exceptions: joining strings with +, an
//     evaluation error, and a message with more than 64 properties.
//   - The hits of [RuleSet.Match] are those of calling Match on each rule, in a
//     fixed order for one set and one message. There are two differences: a rule
//     that an equality or a bound excludes is not evaluated, and so does not run out
//     of steps; and expensive rules may run out of steps earlier, because all rules
//     share the budget of one message: some tens of milliseconds.
//
// # Language
//
//	condition  = condition OR condition | condition AND condition | NOT condition
//	           | value ( = | <> | != | < | <= | > | >= ) value
//	           | value IS [NOT] NULL
//	           | value [NOT] IN ( value, … )
//	           | value [NOT] LIKE value [ ESCAPE value ]
//	           | EXISTS ( property ) | value
//	value      = value ( * | / | % ) value | value ( + | - ) value | +value | -value
//	           | constant | property | @parameter | ( condition )
//	           | newid() | property( value ) | p( value )
//	property   = [ sys. | user. ] name
//	name       = letters, digits, _ | [any ]] text] | "any "" text"
//	constant   = 1 | 1.5 | 1.5E3 | 'text with '' quotes' | N'text' | TRUE | FALSE | NULL
//	action     = statement { ; statement } [ ; ]
//	statement  = SET property = value | REMOVE property
//
// Keywords, scopes, function names and property names ignore case; strings do
// not. docs/guide/filters.md describes the language for users, with examples.
//
// # Semantics
//
// Logic has three values. A user property that the message does not carry is
// unknown; so is NULL, a comparison of unlike types, and anything computed from
// an unknown. A filter matches only when its condition is true. Numbers of any
// width compare by value. Sums that leave the range of 64 bits are unknown; a
// division of integers by zero is an [*evalError], as is a system property that
// has no value yet at the time of evaluation (a lock token before the lock), a
// system property that p() names but does not exist, and an evaluation that
// exceeds its steps.
//
// LIKE reads each character of the text once, unless there is a _ between two
// %: then it may try that part of the pattern at every character, which the
// limit of steps bounds.
//
// # Concurrency
//
// Everything parsed or compiled is immutable and may be shared by goroutines.
// A [View] belongs to one goroutine at a time.
//
// # Invariants
//
//  1. a = b is true exactly when both values have the same index key; the index
//     relies on it.
//  2. An action names only system properties that a sender may set.
//
// # Not here
//
// The broker decides which subscription a rule belongs to, how many copies it
// creates and what happens on an evaluation error. Levels and classes are in
// package policy.
package filter
