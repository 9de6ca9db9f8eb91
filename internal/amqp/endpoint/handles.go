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

// table finds links by handle, or sessions by channel. The zero value is empty.
type table[T any] struct {
	low  []*T
	high map[uint32]*T
}

func (h *table[T]) get(handle uint32) *T {
	if handle < uint32(len(h.low)) {
		return h.low[handle]
	}
	return h.high[handle]
}

// set puts something under a handle, or takes it away with nil.
func (h *table[T]) set(handle uint32, l *T) {
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
			h.high = make(map[uint32]*T)
		}
		h.high[handle] = l
	}
}

// all returns what is there in the order of the handles.
func (h *table[T]) all() []*T {
	links := make([]*T, 0, len(h.low)+len(h.high))
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
