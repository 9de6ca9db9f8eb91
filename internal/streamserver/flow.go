// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Flow counts events since the hub was opened.
type Flow struct {
	Events, Bytes uint64
	Rate          float64 // events a second, lately
}

// lately is the time over which a rate is averaged: what is older counts less and less.
const lately = 10 * time.Second

// meter measures a flow.
type meter struct {
	events, bytes uint64
	rate          float64 // events a second, as of at
	at            time.Time
}

func (m *meter) add(now time.Time, events, bytes uint64) {
	if events == 0 && bytes == 0 {
		return
	}
	m.rate = m.rateAt(now) + float64(events)/lately.Seconds()
	m.at = now
	m.events += events
	m.bytes += bytes
}

func (m *meter) rateAt(now time.Time) float64 {
	if m.rate == 0 {
		return 0
	}
	return m.rate * math.Exp(-now.Sub(m.at).Seconds()/lately.Seconds())
}

func (m *meter) flow(now time.Time) Flow { return Flow{m.events, m.bytes, m.rateAt(now)} }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
