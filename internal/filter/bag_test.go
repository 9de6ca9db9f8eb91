// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strings"
	"testing"
	"time"
)

// bag is a message made of maps.
type bag struct {
	user   map[string]Value
	system map[SystemName]Value
	ids    byte // counts up, so that ids are known
}

func (b *bag) User(name string) *Value {
	if v, ok := b.user[name]; ok {
		return &v
	}
	for key, v := range b.user {
		if strings.EqualFold(key, name) {
			return &v
		}
	}
	return nil
}

// System answers null for the sender's properties that are not in the bag.
func (b *bag) System(name SystemName) *Value {
	if v, ok := b.system[name]; ok {
		return &v
	}
	if name.Settable() {
		v := NullValue()
		return &v
	}
	return nil
}

func (b *bag) NewID() (id [16]byte, ok bool) {
	b.ids++
	return [16]byte{15: b.ids}, true
}

var noon = time.Date(2030, time.January, 31, 12, 0, 0, 0, time.UTC)

// sample is the message that the tables of this package use.
func sample() *bag {
	return &bag{
		user: map[string]Value{
			"Priority": StringValue("High"), "name": StringValue("O'Neil"), "empty": StringValue(""),
			"n": IntValue(5).WithWidth(Int32), "big": UintValue(1<<63 + 5).WithWidth(Uint64), "d": DoubleValue(2.5), "minus": IntValue(-7),
			"yes": BoolValue(true), "no": BoolValue(false), "nothing": NullValue(),
			"sent": TimeValue(noon), "due": TimeValue(noon.Add(time.Hour)), "took": DurationValue(90 * time.Second),
			"id": UUIDValue([16]byte{1, 2}), "map": OpaqueValue(), "bytes": BinaryValue("\x01\x02"),
			"AND": IntValue(1), "two words": IntValue(2), "a]b": IntValue(3), `a"b`: IntValue(4), "größe": IntValue(6),
			"sys": IntValue(8), "p": IntValue(9), "path": StringValue("orders/eu/100%_sure"),
		},
		system: map[SystemName]Value{
			MessageID: StringValue("m-1"), Subject: StringValue("order.created"), SequenceNumber: IntValue(42),
			EnqueuedTimeUTC: TimeValue(noon), DeliveryCount: IntValue(0),
		},
	}
}

var sampleParams = Params{
	"@limit": IntValue(5), "span": DurationValue(time.Hour), "@when": TimeValue(noon), "@Text": StringValue("High"),
	"@flag": BoolValue(true), "@rate": DoubleValue(0.5), "@none": NullValue(),
}

func parse(t testing.TB, sql string) *Expr {
	t.Helper()
	x, err := Parse(sql, sampleParams)
	if err != nil {
		t.Fatalf("Parse(%s): %v", sql, err)
	}
	return x
}
