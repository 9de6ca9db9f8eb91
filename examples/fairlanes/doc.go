// SPDX-License-Identifier: Apache-2.0

// Command fairlanes shows what a discipline does to those who wait.
//
// Two tenants share a queue of three classes. One of them floods it with gold,
// more than the worker can do; the other sends a little silver and bronze. Under
// strict the flood has everything, bronze starves, and the objectives say so.
// Under aging and under deadline bronze is served, within the bound that the
// policy's check prints.
//
//	go run ./examples/fairlanes
package main
