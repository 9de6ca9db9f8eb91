// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"slices"
	"sync"
)

// maxWeight bounds the bytes of the events that are fetched ahead, of each partition.
const maxWeight = 4 << 20

// fetchMemory bounds the bytes of the events that are fetched, of all partitions, until they are
// handled. A partition without any that wait may fetch a delivery in any case: the others may
// stand still.
type fetchMemory struct {
	limit int

	mu      sync.Mutex
	used    int     // guarded by mu
	waiting []*pump // in the order in which they came; guarded by mu
}

// deliverySize is about how many bytes a pump fetches at once.
const deliverySize = 60 << 10

// admits reports whether a pump may fetch more. If not, it is told when it may.
func (m *fetchMemory) admits(p *pump) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.Index(m.waiting, p)
	switch free := m.used < m.limit; {
	case free && at >= 0:
		m.waiting = slices.Delete(m.waiting, at, at+1)
		return true
	case !free && at < 0:
		m.waiting = append(m.waiting, p)
		return false
	default:
		return free
	}
}

// take counts bytes that were fetched.
func (m *fetchMemory) take(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used += n
}

// release gives bytes back, and tells as many pumps as there is space for: all of them when half
// of it is free, since those that are told may have nothing to fetch.
func (m *fetchMemory) release(n int) {
	if n == 0 {
		return
	}
	m.mu.Lock()
	m.used -= n
	var next []*pump
	if free := m.limit - m.used; free > 0 {
		k := len(m.waiting)
		if free < m.limit/2 {
			k = min(free/deliverySize+1, k)
		}
		next = slices.Clone(m.waiting[:k])
		m.waiting = slices.Delete(m.waiting, 0, k)
	}
	m.mu.Unlock()
	for _, p := range next {
		signal(p.freed)
	}
}

// forget takes back what a pump had that has ended.
func (m *fetchMemory) forget(p *pump, bytes int) {
	m.mu.Lock()
	m.waiting = slices.DeleteFunc(m.waiting, func(x *pump) bool { return x == p })
	m.mu.Unlock()
	m.release(bytes)
}
