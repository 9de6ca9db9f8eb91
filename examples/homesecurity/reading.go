// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/triagemq/triagemq/client"
)

// The hub, and its consumer groups besides $Default, which the instances share.
const (
	hubName    = "readings"
	partitions = 16
	liveGroup  = "live" // of the web server
)

// reading is what a sensor reports: the body of an event, in JSON.
type reading struct {
	Home   int    `json:"home"`
	Sensor string `json:"sensor"`
	Value  string `json:"value"`
	At     int64  `json:"at"` // milliseconds since 1970, by the sensor's clock
}

// event makes an event of a reading. All events of a home have the same key: they are in
// one partition, in order, and one instance has them.
func (r reading) event() (*client.Message, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return &client.Message{PartitionKey: homeKey(r.Home), ContentType: "application/json", Body: body}, nil
}

func homeKey(home int) string { return "home-" + strconv.Itoa(home) }

// parseReading reads the body of an event.
func parseReading(body []byte) (reading, error) {
	var r reading
	if err := json.Unmarshal(body, &r); err != nil {
		return reading{}, err
	}
	if r.Home < 0 || r.Sensor == "" {
		return reading{}, fmt.Errorf("a reading names its home and sensor: %.100q", body)
	}
	return r, nil
}

// sensorType is a kind of sensor. It has two values: one that is usual, and one that is not.
type sensorType struct {
	name, usual, unusual string
	alarm                bool          // an unusual value is an alarm
	every                time.Duration // between unusual values, about
}

var sensorTypes = []sensorType{
	{"door", "closed", "open", false, 30 * time.Minute},
	{"window", "closed", "open", false, 2 * time.Hour},
	{"motion", "still", "moving", false, 15 * time.Minute},
	{"smoke", "clear", "smoke", true, 5 * 24 * time.Hour},
	{"water", "dry", "leak", true, 5 * 24 * time.Hour},
	{"glass", "whole", "broken", true, 5 * 24 * time.Hour},
	{"gas", "clear", "gas", true, 5 * 24 * time.Hour},
}

// defaultSensors are those that every home has.
const defaultSensors = "door,window,motion,smoke"

// typeOf returns the kind of a sensor. New kinds need no change here.
func typeOf(sensor string) sensorType {
	for _, t := range sensorTypes {
		if t.name == sensor {
			return t
		}
	}
	return sensorType{sensor, "normal", "alert", true, 5 * 24 * time.Hour}
}

// kind is how a page shows a value.
type kind string

const (
	usual   kind = "usual"
	unusual kind = "unusual"
	raised  kind = "alarm"
)

// kindOf tells what a value of a sensor means.
func kindOf(sensor, value string) kind {
	switch t := typeOf(sensor); {
	case value == t.usual:
		return usual
	case t.alarm:
		return raised
	}
	return unusual
}

var streets = []string{
	"Acacia Avenue", "Birch Lane", "Cedar Road", "Dogwood Close", "Elm Street", "Fir Crescent", "Ginkgo Walk", "Hazel Grove",
	"Juniper Way", "Larch Drive", "Maple Court", "Oak Hill", "Poplar Place", "Rowan Rise", "Spruce Park", "Willow Bank",
}

// addressOf is where a home is.
func addressOf(home int) string {
	return fmt.Sprintf("%d %s", home/len(streets)+1, streets[home%len(streets)])
}
