// SPDX-License-Identifier: Apache-2.0

// Command fairlanes shows the effect of a discipline on waiting messages.
//
// Two tenants share a queue of three classes. One of them floods it, with more
// than the worker can do; the other sends a little of the other classes.
// Under strict a flood of gold gets all deliveries, bronze starves, and the
// objectives show it. Under aging bronze is served, within the bound that the
// policy's check prints. Under deadline a flood of bronze is soon late, and gold
// and silver start in time nevertheless.
//
//	go run ./examples/fairlanes
package main
