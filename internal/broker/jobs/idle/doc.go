// SPDX-License-Identifier: Apache-2.0

// Package idle deletes entities that were not used for their auto-delete time.
//
// Deletion is a job. It examines all entities and lets the catalog delete those that are
// idle.
//
// # Invariants
//
//  1. An entity is deleted only if it was not used since the process started, or since the
//     clock was stepped, for its auto-delete time.
//  2. The shard decides whether an entity is in use, in the same step as the deletion: a
//     send before it counts as use.
//
// # Concurrency
//
// A Deletion belongs to the runner of jobs.
//
// # Not here
//
// What counts as use, and the deletion itself: package catalog.
package idle
