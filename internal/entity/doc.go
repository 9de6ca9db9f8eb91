// SPDX-License-Identifier: Apache-2.0

// Package entity says what a queue, a topic, a subscription, a rule and an event hub are:
// their names, their properties, what these default to, which values are
// allowed and which may change later. It contains definitions, not messages.
//
// One definition serves the configuration file, the broker, both HTTP interfaces
// and the command line. Properties are called what Service Bus calls them, in
// camelCase, so that people find what they know.
//
// # Promise
//
// A zero property means its default; WithDefaults fills it in and never changes
// one that is set. Validate reports every fault at once and expects a value that
// went through WithDefaults. Two names are the same if their Keys are.
//
// # Concurrency
//
// Everything here is a plain value or a pure function.
//
// # Not here
//
// Whether an entity exists, or a forward target does, is the broker's to know.
// SQL texts are parsed by filter, policies by policy; here they are opaque.
package entity
