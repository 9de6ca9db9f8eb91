// SPDX-License-Identifier: Apache-2.0

// Firstdemo shows the core at work: a process fills a queue with messages of
// mixed priorities and is killed in the middle of it; another one finds all that
// was acknowledged and serves it, what matters first.
//
//	go run ./examples/firstdemo
package main
