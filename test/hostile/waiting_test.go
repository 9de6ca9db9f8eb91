// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

// waitingScenes is the attacks by waiting messages, and connections that crowd out others.
var waitingScenes = []attack{}
