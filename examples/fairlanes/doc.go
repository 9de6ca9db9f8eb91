// SPDX-License-Identifier: Apache-2.0

// Command fairlanes shows the effect of a discipline on waiting messages.
//
// Two tenants share a queue of three classes. One of them floods it with gold,
// more than the worker can do; the other sends a little silver and bronze.
// Under strict the flood gets all deliveries, bronze starves, and the
// objectives show it. Under aging and under deadline bronze is served, within
// the bound that the policy's check prints.
//
//	go run ./examples/fairlanes
package main
