// SPDX-License-Identifier: Apache-2.0

// Package pools has the commands about worker pools that have announced themselves to the
// broker: list, pause, resume, resize.
//
// The pools themselves run in other processes, of which the broker tells; see package
// worker.
package pools
