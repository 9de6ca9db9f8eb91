// SPDX-License-Identifier: Apache-2.0

//go:build race

package sim

const defaultSeeds = 30
