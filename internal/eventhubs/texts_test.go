// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"testing"
	"unicode/utf8"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/stream"
)

// The name of a publisher is a partition key, which is compared as it is written.
func TestPublisherKeepsItsSpelling(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	const name = "Device-X"
	if stream.PartitionOf(name, 4) == stream.PartitionOf("device-x", 4) {
		t.Fatal("another name, please")
	}
	if err := p.sender("h").Send(p.ctx(), event(name, "1"), nil); err != nil {
		t.Fatal(err)
	}
	s := p.sender("h/Publishers/" + name)
	for _, m := range []string{"", name} {
		if err := s.Send(p.ctx(), event(m, "2"), nil); err != nil {
			t.Fatalf("key %q: %v", m, err)
		}
	}
	anonymous, addr := event("", "3"), "h/Publishers/"+name
	anonymous.Properties = &amqp.MessageProperties{To: &addr}
	if err := p.sender("").Send(p.ctx(), anonymous, nil); err != nil {
		t.Fatal(err)
	}
	p.want(p.receiver(partition(stream.PartitionOf(name, 4)), from(earliest)), "1", "2", "2", "3")
	wantCondition(t, "the key of another", s.Send(p.ctx(), event("device-x", "x"), nil), "amqp:not-allowed")
}

// The name of a receiver is in what others are told. Some clients fail at text that is no
// UTF-8, and with it their connection.
func TestNameOfAReceiverIsText(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	victim := p.receiver(partition(0), named("victim"))
	properties, at := codec.BeginMap(nil)
	properties = codec.AppendLong(codec.AppendSymbol(properties, names.Epoch), 1)
	properties = codec.AppendString(codec.AppendSymbol(properties, names.ReceiverName), "\xff\xfethief")
	thief := b.raw(t, 1<<30)
	thief.reads()
	thief.say(&frame.Attach{
		Name: "thief", Role: frame.Receiver, SenderSettleMode: frame.SenderMixed, Properties: codec.EndMap(properties, at, 2),
		Source: &frame.Source{Address: partition(0)}, Target: &frame.Target{},
	})
	_, err := victim.Receive(p.ctx(), nil)
	if e := wantCondition(t, "stolen", err, names.Stolen); !utf8.ValidString(e.Description) {
		t.Errorf("the text is %q", e.Description)
	}
}
