// SPDX-License-Identifier: Apache-2.0

package message

import (
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

func TestInheritedIsWrittenAndRemoved(t *testing.T) {
	d := Draft{Body: []byte("x"), Annotations: []Pair{{Name: AnnotationPartitionKey, Value: codec.String("k")}}}
	plain := d.Message()
	if _, ok := plain.Inherited(); ok || plain.WithoutReserved() != plain {
		t.Error("a plain message has inherited something")
	}
	for _, want := range []Inherited{
		{Level: 8, Class: "paid", Since: time.UnixMilli(1_700_000_000_123).UTC()},
		{Level: 0, Since: time.UnixMilli(1).UTC()},
	} {
		m := parse(t, plain.Edit(Edit{Annotations: want.Changes()}))
		if got, ok := m.Inherited(); !ok || got != want || m.WithoutReserved() == m {
			t.Errorf("got %+v, %t, want %+v", got, ok, want)
		}
		if m.PartitionKey() != "k" {
			t.Errorf("the partition key became %q", m.PartitionKey())
		}
		if m = m.WithoutReserved(); string(m.Bytes()) != string(plain.Bytes()) {
			t.Errorf("after removal: %x, want %x", m.Bytes(), plain.Bytes())
		}
	}
}

func TestInheritedThatIsNoLevel(t *testing.T) {
	for _, v := range []codec.Value{codec.String("9"), codec.Int(-1), codec.Int(256), {}} {
		m := (&Draft{Annotations: []Pair{{Name: annotationReplyLevel, Value: v}}}).Message()
		if l, ok := m.Inherited(); ok || m.WithoutReserved() == m {
			t.Errorf("%v: got %+v, %t, want none, and that it is removed", v, l, ok)
		}
	}
}
