// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"errors"
	"fmt"
	"testing"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/entity"
)

func TestLargestBatch(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	const largest = 256 << 10
	limit := func(kb int64) {
		t.Helper()
		if _, err := b.broker.UpdateHub(t.Context(), entity.Hub{Name: "h", PartitionCount: 4, MaxMessageSizeInKilobytes: kb}); err != nil {
			t.Fatal(err)
		}
	}
	limit(largest >> 10)
	s := p.sender("h/Partitions/0")
	if got := s.MaxMessageSize(); got != largest {
		t.Fatalf("the largest message has %d bytes", got)
	}
	const around = 8 // descriptor and size of the body
	if err := s.Send(p.ctx(), amqp.NewMessage(make([]byte, largest-around)), nil); err != nil {
		t.Fatalf("as large as allowed: %v", err)
	}
	if got := len(p.next(p.receiver(partition(0), from(earliest))).GetData()); got != largest-around {
		t.Errorf("received %d bytes", got)
	}
	if err := s.Send(p.ctx(), amqp.NewMessage(make([]byte, largest-around+1)), nil); err == nil {
		t.Fatal("too large, and accepted")
	}
	limit(1)
	// The link knows another limit: it is told, and loses the link.
	wantCondition(t, "too large since", s.Send(p.ctx(), amqp.NewMessage(make([]byte, 1<<10)), nil), names.MessageSizeExceeded)
	if err := s.Send(p.ctx(), amqp.NewMessage(nil), nil); err == nil {
		t.Error("the link is still there")
	}
}

func TestBadBatchIsRejected(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	s := p.sender("h/Partitions/0")
	good := batchOf(t, event("", "a"))
	broken := batchOf(t, event("", "a"))
	broken.Data = append(broken.Data, []byte{0x00, 0x53, 0x75, 0xa0, 9})
	unknown := amqp.NewMessage(nil)
	unknown.Format = 17
	numeric := event("", "a")
	numeric.Annotations = amqp.Annotations{names.AnnotationPartitionKey: int64(1)}
	for _, tt := range []struct {
		name      string
		m         *amqp.Message
		condition string
	}{
		{"no events", &amqp.Message{Format: 0x80013700, Value: "x"}, "amqp:decode-error"},
		{"broken event", broken, "amqp:decode-error"},
		{"unknown format", unknown, "amqp:not-implemented"},
		{"a number as key", numeric, "amqp:decode-error"},
	} {
		wantCondition(t, tt.name, s.Send(p.ctx(), tt.m, nil), tt.condition)
	}
	if err := s.Send(p.ctx(), good, nil); err != nil {
		t.Fatalf("the link is gone: %v", err)
	}
	m := p.next(p.receiver(partition(0), from(earliest)))
	if m.Annotations[names.AnnotationSequenceNumber] != int64(0) || string(m.GetData()) != "a" {
		t.Errorf("the first event is %v", m.Annotations)
	}
}

func TestDisabledHub(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	s := p.sender("h/Partitions/0")
	r := p.receiver(partition(0), from(earliest))
	p.send("h/Partitions/0", "a")
	p.want(r, "a")
	if _, err := b.broker.UpdateHub(t.Context(), entity.Hub{Name: "h", PartitionCount: 4, Status: entity.Disabled}); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, "send", s.Send(p.ctx(), event("", "b"), nil), names.EntityDisabled)
	_, err := r.Receive(p.ctx(), nil)
	wantCondition(t, "receive", err, names.EntityDisabled)
}

// idempotent attaches an idempotent producer as the JavaScript SDK does.
func (p *peerOf) idempotent(addr string, properties map[string]any) (*amqp.Sender, error) {
	return p.session().NewSender(p.ctx(), addr, &amqp.SenderOptions{
		Properties: properties, DesiredCapabilities: []string{names.IdempotentProducer},
	})
}

// numbered is a batch whose events have numbers of an idempotent producer.
func numbered(t testing.TB, seq int32, bodies ...string) *amqp.Message {
	t.Helper()
	var events []*amqp.Message
	for i, b := range bodies {
		e := event("", b)
		e.Annotations = amqp.Annotations{names.ProducerSequence: seq + int32(i)}
		events = append(events, e)
	}
	return batchOf(t, events...)
}

func TestIdempotentProducer(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	s, err := p.idempotent("h/Partitions/1", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := s.Properties()
	id, isLong := got[names.ProducerID].(int64)
	epoch, isShort := got[names.ProducerEpoch].(int16)
	last, isInt := got[names.ProducerSequence].(int32)
	if !isLong || !isShort || !isInt {
		t.Fatalf("properties %#v", got)
	}
	next := last + 1
	send := func(s *amqp.Sender, m *amqp.Message) error { return s.Send(p.ctx(), m, nil) }
	first := numbered(t, next, "a", "b")
	for range 2 { // a batch that is sent again is accepted and not stored again
		if err := send(s, first); err != nil {
			t.Fatal(err)
		}
	}
	if err := send(s, numbered(t, next+2, "c")); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, "a gap", send(s, numbered(t, next+10, "x")), names.OutOfOrderSequence)
	wantCondition(t, "no number", send(s, event("", "x")), names.ArgumentError)

	// It goes on after it has connected again, and excludes its former self.
	again, err := p.idempotent("h/Partitions/1", map[string]any{
		names.ProducerID: id, names.ProducerEpoch: epoch + 1, names.ProducerSequence: next + 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Properties(); got[names.ProducerID] != id || got[names.ProducerEpoch] != epoch+1 || got[names.ProducerSequence] != next+2 {
		t.Errorf("properties %v, want id %d, epoch %d and number %d", got, id, epoch+1, next+2)
	}
	if err := send(again, numbered(t, next+3, "d")); err != nil {
		t.Fatal(err)
	}
	third, err := p.idempotent("h/Partitions/1", map[string]any{names.ProducerID: id, names.ProducerEpoch: epoch + 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := third.Properties()[names.ProducerSequence]; got != next+3 {
		t.Errorf("the last event has number %v, want %d", got, next+3)
	}
	wantCondition(t, "an older epoch", send(s, numbered(t, next+4, "x")), names.ProducerStolen)
	p.want(p.receiver(partition(1), from(earliest)), "a", "b", "c", "d")
}

func TestIdempotentProducerIsRefused(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	for _, tt := range []struct {
		addr       string
		properties map[string]any
		condition  string
	}{
		{"h", nil, "amqp:not-allowed"},
		{"h/Partitions/0", map[string]any{names.ProducerID: "1"}, names.ArgumentError},
		{"h/Partitions/0", map[string]any{names.ProducerEpoch: int64(1 << 20)}, names.ArgumentOutOfRange},
		{"h/Partitions/0", map[string]any{names.ProducerSequence: int64(1 << 40)}, names.ArgumentOutOfRange},
	} {
		_, err := p.idempotent(tt.addr, tt.properties)
		wantCondition(t, fmt.Sprint(tt.addr, tt.properties), err, tt.condition)
	}
}

func TestEventsToTheAnonymousTerminus(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	s := p.sender("")
	to := "h/Partitions/3"
	m := event("", "a")
	m.Properties = &amqp.MessageProperties{To: &to}
	if err := s.Send(p.ctx(), m, nil); err != nil {
		t.Fatal(err)
	}
	p.want(p.receiver(partition(3), from(earliest)), "a")
}

func TestDeletedHub(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	s, r := p.sender("h/Partitions/0"), p.receiver(partition(0), from(earliest))
	waiting := p.receiver("h/ConsumerGroups/g/Partitions/0", from(earliest))
	if err := b.broker.DeleteConsumerGroup(t.Context(), "h", "g"); err != nil {
		t.Fatal(err)
	}
	_, err := waiting.Receive(p.ctx(), nil)
	wantCondition(t, "group deleted", err, "amqp:not-found")
	if err := b.broker.DeleteHub(t.Context(), "h"); err != nil {
		t.Fatal(err)
	}
	_, err = r.Receive(p.ctx(), nil)
	wantCondition(t, "hub deleted", err, "amqp:not-found")
	if err = s.Send(p.ctx(), event("", "x"), nil); err == nil {
		t.Fatal("sent to a hub that is deleted")
	}
	if linkErr := (*amqp.LinkError)(nil); errors.As(err, &linkErr) {
		wantCondition(t, "send to a deleted hub", err, "amqp:not-found")
	}
}
