// SPDX-License-Identifier: Apache-2.0

//go:build race

package queueserver

// With the race detector they drop every twentieth, because each start takes ten times as long.
const dropEvery = 20
