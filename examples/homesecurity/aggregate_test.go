// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"

	"github.com/triagemq/triagemq/client"
)

// story is readings of home 7 in the order of their events.
var story = []reading{
	{7, "door", "closed", 1000},
	{7, "smoke", "clear", 1000},
	{7, "door", "closed", 2000},
	{7, "door", "open", 3000},
	{7, "smoke", "smoke", 4000},
	{7, "smoke", "smoke", 5000},
	{7, "door", "closed", 6000},
	{7, "smoke", "clear", 7000},
	{7, "smoke", "clear", 8000},
}

const storyDocument = `{"home":7,"sensors":[` +
	`{"name":"door","value":"closed","since":6000,"changes":2,"sequenceNumber":6},` +
	`{"name":"smoke","value":"clear","since":7000,"changes":2,"sequenceNumber":7}],` +
	`"changes":4,"alarms":1,"recentAlarms":[{"sensor":"smoke","value":"smoke","at":4000}],"partition":"3","sequenceNumber":7}`

func wantDocument(t *testing.T, a aggregate, want string) {
	t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != want {
		t.Errorf("document\n%s, want\n%s", text, want)
	}
}

func TestAggregateHasLatestValuesCountsAndAlarms(t *testing.T) {
	a := aggregate{Home: 7, SeqNo: -1}
	changes := 0
	for n, r := range story {
		if a.apply(r, "3", client.SeqNo(n)) {
			changes++
		}
	}
	wantDocument(t, a, storyDocument)
	if changes != 6 {
		t.Errorf("%d of the readings changed it, want 6", changes)
	}
}

// After a crash events come again, from any place on.
func TestRepeatedEventsChangeNothing(t *testing.T) {
	for crash := range story {
		for from := range crash {
			a := aggregate{Home: 7, SeqNo: -1}
			for n := range crash {
				a.apply(story[n], "3", client.SeqNo(n))
			}
			for n := from; n < len(story); n++ {
				a.apply(story[n], "3", client.SeqNo(n))
			}
			wantDocument(t, a, storyDocument)
		}
	}
}

func TestAlarmsThatAreListedAreTheNewest(t *testing.T) {
	a := aggregate{SeqNo: -1}
	for n := range 50 {
		r := reading{0, "water", []string{"leak", "dry"}[n%2], int64(n)}
		a.apply(r, "0", client.SeqNo(n))
	}
	if a.Alarms != 25 || len(a.Recent) != recentAlarms || a.Recent[0].At != 48 {
		t.Errorf("%d alarms, %d listed, the first of them of %d", a.Alarms, len(a.Recent), a.Recent[0].At)
	}
}

// Sensors of a kind that the program does not know work like the others.
func TestUnknownSensorsRaiseAlarms(t *testing.T) {
	var a aggregate
	a.apply(reading{0, "radon", "alert", 1}, "0", 1)
	if a.Alarms != 1 {
		t.Errorf("%d alarms, want one", a.Alarms)
	}
}
