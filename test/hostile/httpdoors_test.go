// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

// webScenes is the attacks by HTTP requests: bodies that grow when they are decoded, lists, purges.
var webScenes = []attack{}
