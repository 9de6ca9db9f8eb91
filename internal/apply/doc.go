// SPDX-License-Identifier: Apache-2.0

// Package apply works out how to get from the entities that are there to the ones
// that a file wants.
//
// # Promise
//
// A plan never deletes an entity that is not in the file, unless it is asked to
// prune; it lists such entities as unmanaged. Planning again after a plan was
// executed returns an empty plan. A change that is not possible in place is
// marked as a conflict: to replace the entity would delete its messages.
//
// An entity in the file gets the properties of the file, and the defaults for
// the others. Status, policy, authorization rules and the rules of a
// subscription are exceptions, because they are often managed elsewhere: they
// stay as they are if the file does not have them. So does the number of partitions of a
// hub, which can only grow.
//
// # Concurrency
//
// Everything here is a pure function.
//
// # Not here
//
// Package config reads the file. The caller executes a plan, on a broker or
// over a connection.
package apply
