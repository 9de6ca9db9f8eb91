// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// owner is how SDKs attach a receiver that wants to be the only one.
func owner(name string, epoch int64) *amqp.ReceiverOptions {
	o := from(earliest)
	o.Properties = map[string]any{names.Epoch: epoch, names.ReceiverName: name}
	return o
}

// named attaches a receiver with a name and without an epoch.
func named(name string) *amqp.ReceiverOptions {
	o := from(earliest)
	o.Properties = map[string]any{names.ReceiverName: name}
	return o
}

// stolen checks that a receiver has lost its link to another.
func stolen(t *testing.T, p *peerOf, r *amqp.Receiver, by string) {
	t.Helper()
	_, err := r.Receive(p.ctx(), nil)
	if e := wantCondition(t, "the one before", err, names.Stolen); !strings.Contains(e.Description, "New receiver '"+by+"'") {
		t.Errorf("text %q does not name %s", e.Description, by)
	}
}

func TestEpochs(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	other := b.login(t, rootRule)
	plain := p.receiver(partition(0), named("plain"))
	elsewhere := p.receiver(partition(1), named("elsewhere"))
	group := p.receiver("h/ConsumerGroups/g/Partitions/0", named("group"))

	zero := other.receiver(partition(0), owner("zero", 0))
	stolen(t, p, plain, "zero")
	e := wantCondition(t, "without an epoch", p.attachReceiver(partition(0), named("late")), names.Stolen)
	if want := "At least one receiver for the endpoint is created with epoch of '0', and so non-epoch receiver is not allowed. " +
		"Either reconnect with a higher epoch, or make sure all epoch receivers are closed or disconnected."; e.Description != want {
		t.Errorf("text %q, want %q", e.Description, want)
	}
	same := p.receiver(partition(0), owner("same", 0))
	stolen(t, other, zero, "same")
	two := p.receiver(partition(0), owner("two", 2))
	stolen(t, p, same, "two")
	e = wantCondition(t, "a lower epoch", other.attachReceiver(partition(0), owner("one", 1)), names.Stolen)
	if want := "Receiver 'two' with a higher epoch '2' already exists. Receiver 'one' with epoch 1 cannot be created. " +
		"Make sure you are creating receiver with increasing epoch value to ensure connectivity, or ensure all old epoch receivers are closed or disconnected"; !strings.HasPrefix(e.Description, want) {
		t.Errorf("text %q, want %q", e.Description, want)
	}
	p.send("h/Partitions/0", "a")
	p.send("h/Partitions/1", "b")
	p.want(two, "a")
	p.want(group, "a")
	p.want(elsewhere, "b")

	// One that has left excludes nobody, and neither does one whose connection broke.
	if err := two.Close(p.ctx()); err != nil {
		t.Fatal(err)
	}
	one := other.receiver(partition(0), owner("one", 1))
	other.want(one, "a")
	if err := one.Close(p.ctx()); err != nil {
		t.Fatal(err)
	}
	for epoch := int64(30); epoch >= 0; epoch-- {
		if err := other.receiver(partition(0), owner("lower", epoch)).Close(p.ctx()); err != nil {
			t.Fatal(err)
		}
	}
	other.receiver(partition(0), owner("one", 1))
	other.Conn.Close()
	for {
		err := p.attachReceiver(partition(0), owner("zero", 0))
		if err == nil {
			break
		}
		wantCondition(t, "while the connection ends", err, names.Stolen)
	}
}

func TestFiveReadersWithoutEpoch(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	var all []*amqp.Receiver
	for i := range 5 {
		all = append(all, p.receiver(partition(0), named(fmt.Sprint("r", i))))
	}
	e := wantCondition(t, "the sixth", p.attachReceiver(partition(0), named("r5")), names.ResourceLimitExceeded)
	if !strings.HasPrefix(e.Description, "Exceeded the maximum number of allowed receivers per partition in a consumer group which is 5. List of connected receivers - ") ||
		!strings.Contains(e.Description, "r3") {
		t.Errorf("text %q", e.Description)
	}
	p.send("h/Partitions/0", "a")
	for _, r := range all {
		p.want(r, "a")
	}
	if err := all[2].Close(p.ctx()); err != nil {
		t.Fatal(err)
	}
	p.want(p.receiver(partition(0), named("r5")), "a")
}

func TestRuntimeMetrics(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("h/Partitions/0", "a", "b", "c")
	o := from(earliest)
	o.DesiredCapabilities = []string{names.RuntimeMetric, "com.microsoft:georeplication"}
	r := p.receiver(partition(0), o)
	for _, m := range p.want(r, "a", "b", "c") {
		d := m.DeliveryAnnotations
		at, _ := d["last_enqueued_time_utc"].(time.Time)
		asked, _ := d["runtime_info_retrieval_time_utc"].(time.Time)
		if d["last_enqueued_sequence_number"] != int64(2) || d["last_enqueued_offset"] != "2" || time.Since(at) > time.Hour || time.Since(asked) > time.Hour {
			t.Errorf("delivery annotations %v", d)
		}
	}
	for _, m := range p.want(p.receiver(partition(0), from(earliest)), "a") {
		if len(m.DeliveryAnnotations) > 0 {
			t.Errorf("delivery annotations %v for one that does not want them", m.DeliveryAnnotations)
		}
	}
}

// manual is a receiver that grants credit itself.
func manual() *amqp.ReceiverOptions {
	o := from(earliest)
	o.Credit = -1
	return o
}

func TestCreditIsKept(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	s := p.sender("h/Partitions/0")
	var events []*amqp.Message
	for i := range 100 {
		events = append(events, event("", fmt.Sprint(i)))
	}
	for range 10 {
		if err := s.Send(p.ctx(), batchOf(t, events...), nil); err != nil {
			t.Fatal(err)
		}
	}
	r := p.receiver(partition(0), manual())
	got := int64(0)
	for _, n := range []uint32{1, 7, 500, 1} {
		if err := r.IssueCredit(n); err != nil {
			t.Fatal(err)
		}
		for range n {
			if m := p.next(r); m.Annotations[names.AnnotationSequenceNumber] != got {
				t.Fatalf("event %v, want %d", m.Annotations, got)
			}
			got++
		}
		if m := r.Prefetched(); m != nil {
			t.Fatalf("more than %d were sent", n)
		}
	}
}

func TestReceiverAtTheEndGetsWhatComes(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("h/Partitions/0", "before")
	r := p.receiver(partition(0), from("x-opt-offset > '@latest'"))
	for i := range 20 {
		body := fmt.Sprint("event ", i)
		p.send("h/Partitions/0", body)
		p.want(r, body)
	}
}

func TestRightsOfHubs(t *testing.T) {
	b := start(t)
	sender, listener := b.login(t, sendRule), b.login(t, listenRule)
	sender.send("h/Partitions/0", "a")
	listener.want(listener.receiver(partition(0), from(earliest)), "a")
	wantCondition(t, "receive with the right to send", sender.attachReceiver(partition(0), from(earliest)), names.UnauthorizedAccess)
	_, err := listener.session().NewSender(listener.ctx(), "h", nil)
	wantCondition(t, "send with the right to listen", err, names.UnauthorizedAccess)
	// Both may ask for the partitions: buffered producers do.
	for _, p := range []*peerOf{sender, listener} {
		p.rpc("$management").read(map[string]any{"name": "h", "type": names.TypeHub}, 200)
		p.rpc("h/$management").read(map[string]any{"name": "h", "type": names.TypePartition, "partition": "0"}, 200)
	}
}

func TestTokensOfHubs(t *testing.T) {
	b := start(t)
	p := b.dial(t, &amqp.ConnOptions{HostName: "ns.example:5671", SASLType: amqp.SASLTypeAnonymous()})
	cbs := p.rpc("$cbs")
	soon := time.Now().Add(time.Hour)
	status := func(audience string) any {
		return cbs.put(listenRule, audience, soon).ApplicationProperties["status-code"]
	}
	if got := status("amqps://ns.example/none"); got != int32(404) {
		t.Errorf("a token for no hub: %v", got)
	}
	if got := status("amqps://ns.example/h/ConsumerGroups/none/Partitions/0"); got != int32(404) {
		t.Errorf("a token for no group: %v", got)
	}
	wantCondition(t, "without a token", p.attachReceiver(partition(0), from(earliest)), names.UnauthorizedAccess)
	if got := status("amqps://ns.example/h/ConsumerGroups/$Default/Partitions/0"); got != int32(200) && got != int32(202) {
		t.Fatalf("a token for a partition: %v", got)
	}
	r := p.receiver(partition(0), from(earliest))
	wantCondition(t, "another partition", p.attachReceiver(partition(1), from(earliest)), names.UnauthorizedAccess)
	m := p.rpc("$management")
	m.read(map[string]any{"name": "h", "type": names.TypeHub}, 401)
	if got := status("sb://ns.example/h/$management"); got != int32(200) && got != int32(202) {
		t.Fatalf("a token for management: %v", got)
	}
	m.read(map[string]any{"name": "h", "type": names.TypeHub}, 200)

	// A token that ends takes the link with it.
	cbs.put(listenRule, "amqps://ns.example/h/ConsumerGroups/$Default/Partitions/0", time.Now().Add(2*time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := r.Receive(ctx, nil)
	wantCondition(t, "token expired", err, names.UnauthorizedAccess)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatal("the link stays")
	}
}
