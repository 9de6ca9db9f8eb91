// SPDX-License-Identifier: Apache-2.0

//go:build !race

package repair

// flips is how many bits are flipped, one after another.
const flips = 2000
