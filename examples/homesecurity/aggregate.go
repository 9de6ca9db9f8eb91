// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"github.com/triagemq/triagemq/client"
)

// aggregate is what is kept of a home: the document in blob storage.
type aggregate struct {
	Home    int      `json:"home"`
	Sensors []sensor `json:"sensors"` // by name
	Changes int64    `json:"changes"` // of all sensors
	Alarms  int64    `json:"alarms"`
	Recent  []alarm  `json:"recentAlarms,omitempty"` // the newest first

	// Partition and SeqNo name the last event that changed the document. Events up to it
	// are in the document, so they change nothing when they come again after a crash.
	Partition string       `json:"partition"`
	SeqNo     client.SeqNo `json:"sequenceNumber"`
}

// sensor is the latest value of a sensor.
type sensor struct {
	Name    string       `json:"name"`
	Value   string       `json:"value"`
	Since   int64        `json:"since"` // milliseconds since 1970
	Changes int64        `json:"changes"`
	SeqNo   client.SeqNo `json:"sequenceNumber"` // of the event that changed it
}

// alarm is an alarm that was raised.
type alarm struct {
	Sensor string `json:"sensor"`
	Value  string `json:"value"`
	At     int64  `json:"at"`
}

// recentAlarms is how many alarms a document lists.
const recentAlarms = 10

// apply adds a reading, which is an event of a partition, and reports whether the document
// changed. Readings that repeat the value are ignored: nearly all do, since a sensor
// reports every minute to show that it works.
func (a *aggregate) apply(r reading, partition string, n client.SeqNo) bool {
	if a.Partition == partition && n <= a.SeqNo {
		return false
	}
	i, found := slices.BinarySearchFunc(a.Sensors, r.Sensor, func(s sensor, name string) int { return strings.Compare(s.Name, name) })
	if !found {
		a.Sensors = slices.Insert(a.Sensors, i, sensor{Name: r.Sensor})
	}
	s := &a.Sensors[i]
	if found && s.Value == r.Value {
		return false
	}
	a.Partition, a.SeqNo = partition, n
	s.Value, s.Since, s.SeqNo = r.Value, r.At, n
	if found { // the first reading is no change
		s.Changes++
		a.Changes++
	}
	if kindOf(r.Sensor, r.Value) == raised {
		a.Alarms++
		a.Recent = slices.Insert(a.Recent, 0, alarm{r.Sensor, r.Value, r.At})
		a.Recent = a.Recent[:min(len(a.Recent), recentAlarms)]
	}
	return true
}
