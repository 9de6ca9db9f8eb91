// SPDX-License-Identifier: Apache-2.0

//go:build race

package sim

const defaultSeeds = 8

// fewerTraces divides the traces that are compared.
const fewerTraces = 10 // the race detector makes it slow
