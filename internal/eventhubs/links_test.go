// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/stream"
)

func TestEventIsWhatSDKsExpect(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	sent := event("k", "body")
	sent.Properties = &amqp.MessageProperties{MessageID: "id"}
	sent.ApplicationProperties = map[string]any{"a": int32(1)}
	sent.Annotations["x-mine"] = "kept"
	sent.Footer = amqp.Annotations{"f": "g"}
	before := time.Now().Add(-time.Second)
	if err := p.sender("h").Send(p.ctx(), batchOf(t, sent, event("k", "second")), nil); err != nil {
		t.Fatal(err)
	}
	r := p.receiver(partition(stream.PartitionOf("k", 4)), from(earliest))
	for i, m := range p.want(r, "body", "second") {
		if got := m.Annotations[names.AnnotationSequenceNumber]; got != int64(i) {
			t.Errorf("sequence number is %T %v", got, got)
		}
		if got := m.Annotations[names.AnnotationOffset]; got != fmt.Sprint(i) {
			t.Errorf("offset is %T %v", got, got)
		}
		at, ok := m.Annotations[names.AnnotationEnqueuedTime].(time.Time)
		if !ok || at.Before(before) || at.After(time.Now().Add(time.Second)) {
			t.Errorf("enqueued time is %v", m.Annotations[names.AnnotationEnqueuedTime])
		}
		if got := m.Annotations[names.AnnotationPartitionKey]; got != "k" {
			t.Errorf("partition key is %T %v", got, got)
		}
		if i > 0 {
			continue
		}
		if m.Annotations["x-mine"] != "kept" || m.Footer["f"] != "g" || m.Properties.MessageID != "id" || m.ApplicationProperties["a"] != int32(1) {
			t.Errorf("the event has changed: %+v", m)
		}
		if m.Format != 0 {
			t.Errorf("format %#x", m.Format)
		}
	}
}

func TestAttachIsRefused(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	sendTo := func(addr string) error {
		_, err := p.session().NewSender(p.ctx(), addr, nil)
		return err
	}
	receiveFrom := func(addr string, o *amqp.ReceiverOptions) error {
		return p.attachReceiver(addr, o)
	}
	epoch := func(v any) *amqp.ReceiverOptions {
		o := from(earliest)
		o.Properties = map[string]any{names.Epoch: v}
		return o
	}
	tests := []struct {
		name      string
		err       error
		condition string
		text      string
	}{
		{"sender to nothing", sendTo("none"), "amqp:not-found", "The messaging entity 'sb://"},
		{"sender to a group", sendTo("h/ConsumerGroups/$Default"), "amqp:not-allowed", ""},
		{"sender to a partition of a group", sendTo(partition(0)), "amqp:not-allowed", ""},
		{"sender to a disabled hub", sendTo("off"), "com.microsoft:entity-disabled", "is currently disabled."},
		{"sender to partition 4", sendTo("h/Partitions/4"), "com.microsoft:argument-out-of-range", ""},
		{"sender to partition 007", sendTo("h/Partitions/007"), "com.microsoft:argument-out-of-range", ""},
		{"sender to partition -1", sendTo("h/Partitions/-1"), "com.microsoft:argument-out-of-range", ""},
		{"receiver from the hub", receiveFrom("h", from("")), "amqp:not-allowed", "ConsumerGroups"},
		{"receiver from a group", receiveFrom("h/ConsumerGroups/$Default", from("")), "amqp:not-allowed", ""},
		{"receiver without a group", receiveFrom("h/Partitions/0", from("")), "amqp:not-allowed", ""},
		{"receiver from a disabled hub", receiveFrom("off/ConsumerGroups/$Default/Partitions/0", from("")), "com.microsoft:entity-disabled", ""},
		{"receiver of no group", receiveFrom("h/ConsumerGroups/none/Partitions/0", from("")), "amqp:not-found", ""},
		{"receiver from partition 4", receiveFrom(partition(4), from("")), "com.microsoft:argument-out-of-range", "0 to 3"},
		{"receiver from partition 99999999999999999999", receiveFrom("h/ConsumerGroups/g/Partitions/99999999999999999999", from("")), "com.microsoft:argument-out-of-range", ""},
		{"receiver from partition x", receiveFrom("h/ConsumerGroups/g/Partitions/x", from("")), "com.microsoft:argument-out-of-range", ""},
		{"foreign offset", receiveFrom(partition(0), from("x-opt-offset > '2:5:7'")), names.InvalidOffset, ""},
		{"bad filter", receiveFrom(partition(0), from("x-opt-color > '2'")), names.ArgumentOutOfRange, ""},
		{"long filter", receiveFrom(partition(0), from(strings.Repeat("x", 50_000))), names.ArgumentOutOfRange, ""},
		{"offset behind the end", receiveFrom(partition(0), from("x-opt-offset > '17'")), names.ArgumentOutOfRange, "is invalid"},
		{"epoch that is text", receiveFrom(partition(0), epoch("1")), names.ArgumentError, names.Epoch},
		{"epoch that is negative", receiveFrom(partition(0), epoch(int64(-1))), names.ArgumentOutOfRange, names.Epoch},
		{"epoch that is a list", receiveFrom(partition(0), epoch([]int64{1})), names.ArgumentError, names.Epoch},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := wantCondition(t, tt.name, tt.err, tt.condition)
			if !strings.Contains(e.Description, tt.text) {
				t.Errorf("text %q, want it to contain %q", e.Description, tt.text)
			}
		})
	}
}

func TestStartPositions(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("h/Partitions/1", "a", "b", "c")
	all := p.receiver(partition(1), from(earliest))
	ms := p.want(all, "a", "b", "c")
	at := func(i int) int64 { return ms[i].Annotations[names.AnnotationEnqueuedTime].(time.Time).UnixMilli() }
	tests := []struct {
		selector string
		want     []string
	}{
		{"", []string{"a", "b", "c"}},
		{"x-opt-offset >= '-1'", []string{"a", "b", "c"}},
		{"x-opt-offset > '0'", []string{"b", "c"}},
		{"x-opt-offset >= '2'", []string{"c"}},
		{"x-opt-sequence-number > '1'", []string{"c"}},
		{"x-opt-sequence-number >= '1'", []string{"b", "c"}},
		{"x-opt-offset > '2'", nil},
		{"x-opt-offset > '@latest'", nil},
		{fmt.Sprintf("x-opt-enqueued-time >= '%d'", at(0)), []string{"a", "b", "c"}},
		{fmt.Sprintf("x-opt-enqueued-time > '%d'", at(2)), nil},
		{"x-opt-enqueued-time > '-5'", []string{"a", "b", "c"}},
	}
	for i, tt := range tests {
		group := "$Default"
		if i%2 == 0 {
			group = "g" // since there may be five readers in a group
		}
		r := p.receiver("h/ConsumerGroups/"+group+"/Partitions/1", from(tt.selector))
		p.send("h/Partitions/1", "end")
		p.want(r, append(tt.want, "end")...)
		if err := r.Close(p.ctx()); err != nil {
			t.Fatal(err)
		}
		// The next one begins behind it.
		for j := range tests[i+1:] {
			if tests[i+1+j].want != nil || strings.Contains(tests[i+1+j].selector, "> '2'") {
				tests[i+1+j].want = append(tests[i+1+j].want, "end")
			}
		}
	}
}

func TestRoutesOfASender(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	to := func(addr string, m *amqp.Message) error { return p.sender(addr).Send(p.ctx(), m, nil) }
	for _, err := range []error{
		to("h", event("key-1", "1")),
		to("h", batchOf(t, event("key-1", "2"), event("key-1", "3"))),
		to("h/Publishers/key-1", event("", "4")),
		to("h/Partitions/"+fmt.Sprint(stream.PartitionOf("key-1", 4)), event("", "5")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p.want(p.receiver(partition(stream.PartitionOf("key-1", 4)), from(earliest)), "1", "2", "3", "4", "5")
	wantCondition(t, "a key to a partition", to("h/Partitions/1", event("key-1", "x")), names.NotAllowed)

	// Without a key batches take turns, and each stays together.
	s := p.sender("h")
	for i := range 8 {
		if err := s.Send(p.ctx(), batchOf(t, event("", fmt.Sprint(i, "a")), event("", fmt.Sprint(i, "b"))), nil); err != nil {
			t.Fatal(err)
		}
	}
	rpc := p.rpc("$management")
	total := int64(0)
	for i := range 4 {
		info := rpc.read(map[string]any{"name": "h", "type": names.TypePartition, "partition": fmt.Sprint(i)}, 200)
		n := info["last_enqueued_sequence_number"].(int64) + 1
		if i == stream.PartitionOf("key-1", 4) {
			n -= 5
		}
		if n != 4 {
			t.Errorf("partition %d has %d events of 16", i, n)
		}
		total += n
	}
	if total != 16 {
		t.Errorf("%d events are stored, want 16", total)
	}
}

func TestManagementOfAHub(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("h/Partitions/2", "a", "b")
	for _, node := range []string{"$management", "h/$management"} {
		rpc := p.rpc(node)
		hub := rpc.read(map[string]any{"name": "h", "type": names.TypeHub, "security_token": "x"}, 200)
		ids, _ := hub["partition_ids"].([]string)
		created, _ := hub["created_at"].(time.Time)
		if hub["name"] != "h" || hub["type"] != names.TypeHub || hub["partition_count"] != int32(4) || strings.Join(ids, "") != "0123" ||
			hub["georeplication_factor"] != int32(1) || time.Since(created) > time.Hour {
			t.Errorf("%s: %v", node, hub)
		}
		full := rpc.read(map[string]any{"name": "H", "type": names.TypePartition, "partition": "2"}, 200)
		at, _ := full["last_enqueued_time_utc"].(time.Time)
		if full["name"] != "h" || full["partition"] != "2" || full["begin_sequence_number"] != int64(0) || full["last_enqueued_sequence_number"] != int64(1) ||
			full["last_enqueued_offset"] != "1" || full["is_partition_empty"] != false || time.Since(at) > time.Hour {
			t.Errorf("%s: %v", node, full)
		}
		empty := rpc.read(map[string]any{"name": "h", "type": names.TypePartition, "partition": "3"}, 200)
		if empty["begin_sequence_number"] != int64(0) || empty["last_enqueued_sequence_number"] != int64(-1) ||
			empty["last_enqueued_offset"] != "-1" || empty["is_partition_empty"] != true {
			t.Errorf("%s: %v", node, empty)
		}
		rpc.read(map[string]any{"name": "h", "type": names.TypePartition, "partition": "4"}, 404)
		rpc.read(map[string]any{"name": "h", "type": names.TypePartition, "partition": "03"}, 404)
		rpc.read(map[string]any{"name": "h", "type": "com.microsoft:sofa"}, 400)
	}
	p.rpc("$management").read(map[string]any{"name": "none", "type": names.TypeHub}, 404)
}
