// SPDX-License-Identifier: Apache-2.0

//go:build !race

package groups

const defaultSeeds = 18
