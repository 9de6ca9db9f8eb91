// SPDX-License-Identifier: Apache-2.0

//go:build !race

package queueserver

// The tests of a repair drop every record of a history, one at a time.
const dropEvery = 1
