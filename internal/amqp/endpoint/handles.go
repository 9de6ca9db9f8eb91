// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"maps"
	"slices"
)

// fewHandles is up to where handles index an array. Clients count from zero, so
// that others are rare, and a peer that picks high ones does not make us keep
// arrays for it.
const fewHandles = 32

// handles finds links by handle. The zero value is empty.
type handles struct {
	low  []*Link
	high map[uint32]*Link
}

func (h *handles) get(handle uint32) *Link {
	if handle < uint32(len(h.low)) {
		return h.low[handle]
	}
	return h.high[handle]
}

// set puts a link under a handle, or takes it away with nil.
func (h *handles) set(handle uint32, l *Link) {
	switch {
	case handle < fewHandles:
		for int(handle) >= len(h.low) {
			h.low = append(h.low, nil)
		}
		h.low[handle] = l
	case l == nil:
		delete(h.high, handle)
	default:
		if h.high == nil {
			h.high = make(map[uint32]*Link)
		}
		h.high[handle] = l
	}
}

// all returns the links in the order of their handles.
func (h *handles) all() []*Link {
	links := make([]*Link, 0, len(h.low)+len(h.high))
	for _, l := range h.low {
		if l != nil {
			links = append(links, l)
		}
	}
	for _, handle := range slices.Sorted(maps.Keys(h.high)) {
		links = append(links, h.high[handle])
	}
	return links
}
