// SPDX-License-Identifier: Apache-2.0

// Package apply works out how to get from the entities that are there to the ones
// that a file wants.
//
// # Promise
//
// A plan never deletes what the file does not name, unless it is asked to prune;
// what it leaves alone it lists. Carrying a plan out and planning again gives an
// empty plan. What cannot be changed in place is marked as blocked: the messages
// in it are worth more than the file.
//
// An entity that the file names gets the properties that the file gives it, and
// the defaults for the others, except for those that have a life of their own:
// without a word about them, status, policy, authorization rules and the rules of
// a subscription stay as they are.
//
// # Concurrency
//
// Everything here is a pure function.
//
// # Not here
//
// Reading the file is package config's; carrying a plan out is the caller's, who
// knows whether there is a broker or a connection to one.
package apply
