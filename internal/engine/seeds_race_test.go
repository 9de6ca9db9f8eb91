// SPDX-License-Identifier: Apache-2.0

//go:build race

package engine

// seeds is how many runs with crashes there are.
const seeds = 10
