// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

// definitionScenes is the attacks by what a key with the right Manage defines.
var definitionScenes = []attack{}
