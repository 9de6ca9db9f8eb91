// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/filter/value"
)

// bag is a message made of maps.
type bag struct {
	user   map[string]value.Value
	system map[SystemName]value.Value
	ids    byte // counts up, so that ids are known
}

func (b *bag) User(name string) *value.Value {
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
func (b *bag) System(name SystemName) *value.Value {
	if v, ok := b.system[name]; ok {
		return &v
	}
	if name.Settable() {
		v := value.MakeNull()
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
		user: map[string]value.Value{
			"Priority": value.MakeString("High"), "name": value.MakeString("O'Neil"), "empty": value.MakeString(""),
			"n": value.MakeInt(5).WithWidth(value.Int32), "big": value.MakeUint(1<<63 + 5).WithWidth(value.Uint64), "d": value.MakeDouble(2.5), "minus": value.MakeInt(-7),
			"yes": value.MakeBool(true), "no": value.MakeBool(false), "nothing": value.MakeNull(),
			"sent": value.MakeTime(noon), "due": value.MakeTime(noon.Add(time.Hour)), "took": value.MakeDuration(90 * time.Second),
			"id": value.MakeUUID([16]byte{1, 2}), "map": value.MakeOpaque(), "bytes": value.MakeBinary("\x01\x02"),
			"AND": value.MakeInt(1), "two words": value.MakeInt(2), "a]b": value.MakeInt(3), `a"b`: value.MakeInt(4), "größe": value.MakeInt(6),
			"sys": value.MakeInt(8), "p": value.MakeInt(9), "path": value.MakeString("orders/eu/100%_sure"),
		},
		system: map[SystemName]value.Value{
			MessageID: value.MakeString("m-1"), Subject: value.MakeString("order.created"), SequenceNumber: value.MakeInt(42),
			EnqueuedTimeUTC: value.MakeTime(noon), DeliveryCount: value.MakeInt(0),
		},
	}
}

var sampleParams = Params{
	"@limit": value.MakeInt(5), "span": value.MakeDuration(time.Hour), "@when": value.MakeTime(noon), "@Text": value.MakeString("High"),
	"@flag": value.MakeBool(true), "@rate": value.MakeDouble(0.5), "@none": value.MakeNull(),
}

func parse(t testing.TB, sql string) *Expr {
	t.Helper()
	x, err := Parse(sql, sampleParams)
	if err != nil {
		t.Fatalf("Parse(%s): %v", sql, err)
	}
	return x
}
