// SPDX-License-Identifier: Apache-2.0

// Package validate checks the definitions of entities, before they are stored or by
// themselves.
//
//	faults.go   everything that is wrong with a queue, topic, subscription, rule or policy
//	compile.go  filters and actions of rules, compiled
//
// # Invariants
//
// A definition without faults can be compiled: filters, actions and policies are checked by
// compiling them.
//
// # Concurrency
//
// None: these are functions over values of the caller.
//
// # Not here
//
// Checks that need other entities, such as targets of forwarding: package catalog.
package validate
