// SPDX-License-Identifier: Apache-2.0

// Demo shows the product at work, in less than a minute: the worked example of
// the Priority Queue pattern, one plain queue that sorts by itself, a broker that
// is killed and recovers everything, and an event hub that is read twice. It builds the binary and
// starts the broker itself, on a free port and in a directory that it removes
// at the end.
//
//	go run ./examples/demo
package main
