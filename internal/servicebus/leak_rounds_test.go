// SPDX-License-Identifier: Apache-2.0

//go:build !race

package servicebus

const leakRounds = 10
