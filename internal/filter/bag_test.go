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
		v := MakeNull()
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
			"Priority": MakeString("High"), "name": MakeString("O'Neil"), "empty": MakeString(""),
			"n": MakeInt(5).WithWidth(Int32), "big": MakeUint(1<<63 + 5).WithWidth(Uint64), "d": MakeDouble(2.5), "minus": MakeInt(-7),
			"yes": MakeBool(true), "no": MakeBool(false), "nothing": MakeNull(),
			"sent": MakeTime(noon), "due": MakeTime(noon.Add(time.Hour)), "took": MakeDuration(90 * time.Second),
			"id": MakeUUID([16]byte{1, 2}), "map": MakeOpaque(), "bytes": MakeBinary("\x01\x02"),
			"AND": MakeInt(1), "two words": MakeInt(2), "a]b": MakeInt(3), `a"b`: MakeInt(4), "größe": MakeInt(6),
			"sys": MakeInt(8), "p": MakeInt(9), "path": MakeString("orders/eu/100%_sure"),
		},
		system: map[SystemName]Value{
			MessageID: MakeString("m-1"), Subject: MakeString("order.created"), SequenceNumber: MakeInt(42),
			EnqueuedTimeUTC: MakeTime(noon), DeliveryCount: MakeInt(0),
		},
	}
}

var sampleParams = Params{
	"@limit": MakeInt(5), "span": MakeDuration(time.Hour), "@when": MakeTime(noon), "@Text": MakeString("High"),
	"@flag": MakeBool(true), "@rate": MakeDouble(0.5), "@none": MakeNull(),
}

func parse(t testing.TB, sql string) *Expr {
	t.Helper()
	x, err := Parse(sql, sampleParams)
	if err != nil {
		t.Fatalf("Parse(%s): %v", sql, err)
	}
	return x
}
