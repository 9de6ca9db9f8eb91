// SPDX-License-Identifier: Apache-2.0

package message

import (
	"errors"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/limits"
)

// manyNulls is an array of more elements without bytes than an incoming message
// may have.
func manyNulls() codec.Value {
	// array32 of size and count, and the constructor of null
	r := codec.NewReader([]byte{0xf0, 0, 0, 0, 5, 0, 0, 0x10, 0, 0x40})
	return r.Value()
}

// A message that was taken in before a limit was there stays readable.
func TestStoredMessagesKeepToNoLimitOfElements(t *testing.T) {
	nulls := manyNulls()
	inBody := (&Draft{Value: &nulls}).Encode(nil)
	inProperty := codec.AppendDescriptor(nil, codeApplication)
	inProperty, at := codec.BeginMap(inProperty)
	inProperty = codec.AppendValue(codec.AppendString(inProperty, "nulls"), nulls)
	inProperty = codec.AppendInt(codec.AppendString(inProperty, "n"), 7)
	inProperty = codec.EndMap(inProperty, at, 2)
	for name, raw := range map[string][]byte{"body": inBody, "property": inProperty} {
		if _, err := Parse(raw); !errors.Is(err, codec.ErrElements) {
			t.Errorf("%s: incoming: %v", name, err)
		}
		m, err := ParseStored(raw)
		if err != nil {
			t.Errorf("%s: one that is stored: %v", name, err)
			continue
		}
		edited, err := ParseStored(m.Edit(Edit{Properties: []Change{{Name: "why", Value: codec.String("old")}}}))
		if err != nil {
			t.Errorf("%s: edited: %v", name, err)
			continue
		}
		if v, _ := edited.Property("why"); v.String() != "old" {
			t.Errorf("%s: edited has the property %v", name, v)
		}
		// What is new in it has to keep to the limit.
		again := edited.Edit(Edit{Properties: []Change{{Name: "more", Value: nulls}}})
		if len(again) > edited.Size() {
			t.Errorf("%s: an edit adds more than %d elements without bytes", name, limits.EmptyElements)
		}
	}
	if m, err := ParseStored(inProperty); err == nil {
		if v, _ := m.Property("n"); v.String() != "7" {
			t.Errorf("behind the array is %v", v)
		}
	}
	// Damage is still found.
	if _, err := ParseStored(inBody[:len(inBody)-1]); err == nil {
		t.Error("half an array is taken for one")
	}
}
