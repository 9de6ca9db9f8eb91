// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"strings"
	"testing"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/limits"
)

// Request and reply between plain clients: the asker makes a node of its own and
// the answer comes there, from another connection.
func TestReplyToATemporaryNode(t *testing.T) {
	b := start(t)
	asker, answerer := b.login(t, rootRule), b.login(t, rootRule)
	replies := asker.receiver("", &amqp.ReceiverOptions{DynamicAddress: true, Credit: -1})
	replyTo := replies.Address()
	if !strings.HasPrefix(replyTo, "$temporary/") {
		t.Fatalf("dynamic address %q", replyTo)
	}
	asker.send("q", &amqp.Message{Value: "how much?", Properties: &amqp.MessageProperties{ReplyTo: &replyTo}})

	r := answerer.receiver("q", peekLock())
	question := answerer.next(r)
	to := answerer.sender(*question.Properties.ReplyTo)
	for _, text := range []string{"this much", "or so"} { // the second waits for credit
		if err := to.Send(answerer.ctx(), &amqp.Message{Value: text}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"this much", "or so"} {
		if m := asker.next(replies); m.Value != want {
			t.Errorf("got %v, want %v", m.Value, want)
		}
	}

	if err := replies.Close(asker.ctx()); err != nil {
		t.Fatal(err)
	}
	err := to.Send(answerer.ctx(), &amqp.Message{Value: "too late"}, nil)
	wantCondition(t, "send to a node that is gone", err, "amqp:not-found")
}

func TestTemporaryNodeIsBounded(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	replies := p.receiver("", &amqp.ReceiverOptions{DynamicAddress: true, Credit: -1})
	to := p.sender(replies.Address())
	m := amqp.NewMessage(make([]byte, limits.TemporaryNode/16))
	for i := range 17 {
		err := to.Send(p.ctx(), m, nil)
		if err != nil {
			wantCondition(t, "full node", err, "amqp:resource-limit-exceeded")
			if i < 10 {
				t.Errorf("full after %d messages", i)
			}
			return
		}
	}
	t.Error("the node took everything")
}

// A message that is larger than the reader of a node takes is refused, and those behind
// it arrive.
func TestTemporaryNodeRefusesWhatItsReaderCannotTake(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	r := p.receiver("", &amqp.ReceiverOptions{DynamicAddress: true, Credit: 10, MaxMessageSize: 1000})
	to := p.sender(r.Address())
	err := to.Send(p.ctx(), amqp.NewMessage(make([]byte, 2000)), nil)
	wantCondition(t, "a large message", err, "amqp:link:message-size-exceeded")
	if err := to.Send(p.ctx(), &amqp.Message{Value: "small"}, nil); err != nil {
		t.Fatal(err)
	}
	if m, err := r.Receive(p.ctx(), nil); err != nil || m.Value != "small" {
		t.Errorf("got %v, %v, want the small one", m, err)
	}
}

// A reader that drains is answered also when more waits for it than it gave credit for.
func TestDrainOfATemporaryNodeThatHoldsMore(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	r := p.receiver("", &amqp.ReceiverOptions{DynamicAddress: true, Credit: -1})
	to := p.sender(r.Address())
	for range 3 {
		if err := to.Send(p.ctx(), &amqp.Message{Value: "x"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	p.next(r)
	if err := r.DrainCredit(p.ctx(), nil); err != nil {
		t.Fatalf("drain: %v", err)
	}
	p.next(r)
}

// A message to the anonymous terminus goes where its 'to' says.
func TestRelay(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	relay := p.sender("")
	to, nowhere := "q", "none"
	if err := relay.Send(p.ctx(), &amqp.Message{Value: "x", Properties: &amqp.MessageProperties{To: &to}}, nil); err != nil {
		t.Fatal(err)
	}
	if m := p.next(p.receiver("q", peekLock())); m.Value != "x" {
		t.Errorf("got %v", m.Value)
	}
	err := relay.Send(p.ctx(), &amqp.Message{Value: "x", Properties: &amqp.MessageProperties{To: &nowhere}}, nil)
	wantCondition(t, "unknown address", err, "amqp:not-found")
	err = relay.Send(p.ctx(), &amqp.Message{Value: "x"}, nil)
	wantCondition(t, "no address", err, "amqp:not-allowed")
}
