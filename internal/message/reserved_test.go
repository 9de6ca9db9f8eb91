// SPDX-License-Identifier: Apache-2.0

package message

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/names"
)

// free are the names of message annotations and application properties that senders may
// set, and why.
var free = map[string]string{
	names.AnnotationPartitionKey:         "the sender chooses it",
	names.AnnotationViaPartitionKey:      "the sender chooses it",
	names.AnnotationScheduledEnqueueTime: "the sender chooses it",
	names.AnnotationLockToken:            "it is a delivery annotation, and every delivery replaces it",
	names.DeadLetterReason:               "a consumer sends a dead letter again with its properties; nothing decides by it",
	names.DeadLetterDescription:          "as for the reason",
	names.LastSequenceNumber:             "a delivery annotation of readers that ask for it, which replaces that of a sender",
	names.LastOffset:                     "as for the last number",
	names.LastEnqueuedTime:               "as for the last number",
	names.RetrievalTime:                  "as for the last number",
	names.ProducerID:                     "an idempotent producer names itself, and its link is compared with it",
	names.ProducerEpoch:                  "as for the producer",
	names.ProducerSequence:               "as for the producer",
}

// A new name of a message needs an entry that says who may set it.
func TestEveryNameOfAMessageIsReservedOrFree(t *testing.T) {
	file, err := parser.ParseFile(gotoken.NewFileSet(), "../amqp/names/messages.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for node := range ast.Preorder(file) {
		lit, ok := node.(*ast.BasicLit)
		if !ok || lit.Kind != gotoken.STRING {
			continue
		}
		name, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Fatal(err)
		}
		n++
		reserved := reservedAnnotations[name] || IsReserved(name)
		if reserved == (free[name] != "") {
			t.Errorf("%s is reserved: %t, free: %q; want one of them", name, reserved, free[name])
		}
	}
	if n < 15 {
		t.Fatalf("%d names found, want all of them", n)
	}
}

func TestReservedNamesAreRemoved(t *testing.T) {
	kept := []Pair{{Name: AnnotationPartitionKey, Value: codec.String("k")}, {Name: "x-mine", Value: codec.Int(1)}}
	own := []Pair{{Name: "triagemq-statement", Value: codec.Int(1)}, {Name: "Priority", Value: codec.Int(9)}}
	plain := (&Draft{Body: []byte("x"), MessageID: codec.String("id"), Annotations: kept, Application: own}).Message()
	if plain.WithoutReserved() != plain {
		t.Error("a message without reserved names is copied")
	}
	annotations, properties := slices.Collect(maps.Keys(reservedAnnotations)), append(reservedProperties[:], "Triagemq-State", "TRIAGEMQ-PREEMPTIONS")
	forge := func(ps []Pair, of []string) []Pair {
		ps = append([]Pair(nil), ps...)
		for _, name := range of {
			ps = append(ps, Pair{Name: name, Value: codec.String("forged")}, Pair{Name: name, Value: codec.Int(2)})
		}
		return ps
	}
	for what, d := range map[string]Draft{
		"annotations": {Annotations: forge(kept, annotations), Application: own},
		"properties":  {Annotations: kept, Application: forge(own, properties)},
		"both":        {Annotations: forge(kept, annotations), Application: forge(own, properties)},
	} {
		d.Body, d.MessageID = []byte("x"), codec.String("id")
		m := d.Message()
		got := m.WithoutReserved()
		if string(got.Bytes()) != string(plain.Bytes()) || cap(got.Bytes()) > m.Size()+m.Size()/4 {
			t.Errorf("%s: %x in %d bytes, want %x", what, got.Bytes(), cap(got.Bytes()), plain.Bytes())
		}
	}
	only := (&Draft{Body: []byte("x"), Application: forge(nil, properties), Annotations: forge(nil, annotations)}).Message()
	if got, want := only.WithoutReserved(), (&Draft{Body: []byte("x")}).Message(); string(got.Bytes()) != string(want.Bytes()) {
		t.Errorf("nothing but reserved names: %x, want %x", got.Bytes(), want.Bytes())
	}
}

func TestPlainMessagesAreNotCopied(t *testing.T) {
	m := (&Draft{Body: []byte("x"), Annotations: []Pair{{Name: AnnotationPartitionKey, Value: codec.String("k")}},
		Application: []Pair{{Name: "Priority", Value: codec.Int(9)}}}).Message()
	if n := testing.AllocsPerRun(100, func() { m.WithoutReserved() }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
