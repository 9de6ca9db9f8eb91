// SPDX-License-Identifier: Apache-2.0

//go:build !race

package streams

const defaultSeeds = 40
