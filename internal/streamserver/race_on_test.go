// SPDX-License-Identifier: Apache-2.0

//go:build race

package streamserver

// raceEnabled says that tests take ten times as long.
const raceEnabled = true
