// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

// wireScenes is the attacks by peers that speak AMQP: frames, ranges, replies without credit, names.
var wireScenes = []attack{}
