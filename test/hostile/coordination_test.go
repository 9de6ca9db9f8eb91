// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

// coordinationScenes is the attacks by consumer groups and worker pools.
var coordinationScenes = []attack{}
