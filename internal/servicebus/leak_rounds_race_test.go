// SPDX-License-Identifier: Apache-2.0

//go:build race

package servicebus

// Each round takes ten times as long with the race detector.
const leakRounds = 2
