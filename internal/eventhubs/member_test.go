// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"errors"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/entity"
)

// assigned receives assignments until one has n partitions.
func (p *peerOf) assigned(r *amqp.Receiver, n int) map[string]any {
	p.t.Helper()
	for {
		m := p.next(r)
		fields, ok := m.Value.(map[string]any)
		if !ok || m.DeliveryTag == nil {
			p.t.Fatalf("an assignment is %+v", m)
		}
		if len(fields["partitions"].([]int32)) == n {
			return fields
		}
	}
}

func TestMemberOnTheWire(t *testing.T) {
	b := start(t)
	p := b.login(t, listenRule)
	r := p.receiver(groupG, joining("m", "1"))
	if r.Properties()[names.Member] != "m" {
		t.Errorf("the answer has the properties %v", r.Properties())
	}
	first := p.assigned(r, 4)
	version, _ := first["version"].(uint64)
	epochs, _ := first["epochs"].([]int64)
	checkpoints, _ := first["checkpoints"].([]int64)
	revoke, _ := first["revoke-in"].([]int32)
	if version == 0 || first["partition-count"] != int32(4) || len(epochs) != 4 || epochs[3] != 1 || len(checkpoints) != 4 || checkpoints[0] != -1 ||
		len(revoke) != 4 || revoke[0] != -1 {
		t.Errorf("the assignment is %v", first)
	}
	// Another connection has no such member, and the same one has.
	other := b.login(t, listenRule)
	other.rpc("$management").ask(names.GroupReport, map[string]any{"member": "m"}, 404)
	mgmt := p.rpc("$management")
	mgmt.ask(names.GroupReport, map[string]any{"member": "m"}, 204)
	one := []int32{2}
	mgmt.ask(names.GroupReport, map[string]any{"member": "m", "partitions": one, "handled": []int64{-1}, "busy": []int64{5}, "bytes": []int64{6}}, 204)
	full := map[string]any{"member": "m", "partitions": one, "handled": []int64{-1}, "busy": []int64{5}, "bytes": []int64{6}, "epochs": []int64{1}, "skipped": []int64{7}}
	mgmt.ask(names.GroupReport, full, 204)
	full["skipped"] = []int64{-7}
	mgmt.ask(names.GroupReport, full, 400)
	mgmt.ask(names.GroupReport, map[string]any{"member": "m", "partitions": one, "handled": []int64{1, 2}, "busy": []int64{5}, "bytes": []int64{6}}, 400)
	mgmt.ask(names.GroupReport, map[string]any{"member": "m", "partitions": one, "handled": []int64{1}, "busy": []int64{-5}, "bytes": []int64{6}}, 400)
	mgmt.ask(names.GroupReport, map[string]any{"member": "m", "partitions": one}, 400)
	// Another run ends the link, whose member is unknown then.
	next := other.receiver(groupG, joining("m", "2"))
	if got := other.assigned(next, 4)["epochs"].([]int64); got[0] != 2 {
		t.Errorf("the epochs of the other run are %v", got)
	}
	for {
		if _, err := r.Receive(p.ctx(), nil); err != nil {
			wantCondition(t, "the older link", err, names.Stolen)
			break
		}
	}
	mgmt.ask(names.GroupReport, map[string]any{"member": "m"}, 404)
	mgmt.ask(names.GroupLeave, map[string]any{"member": "m"}, 404)
	// One that has left is detached without an error.
	far := other.rpc("$management")
	far.ask(names.GroupLeave, map[string]any{"member": "m"}, 204)
	last := other.assigned(next, 4)
	for i, partition := range last["partitions"].([]int32) {
		far.ask(names.GroupRelease, map[string]any{"member": "m", "partition": partition, "epoch": last["epochs"].([]int64)[i]}, 204)
	}
	for {
		if _, err := next.Receive(other.ctx(), nil); err != nil {
			if e, ok := errors.AsType[*amqp.LinkError](err); !ok || e.RemoteErr != nil {
				t.Errorf("a member that has left: %v", err)
			}
			return
		}
	}
}

// A member that does not read gets the newest assignment, and no others.
func TestOlderAssignmentsAreReplaced(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	o := joining("m", "1")
	o.Credit = -1 // by hand
	r := p.receiver(groupG, o)
	mgmt := p.rpc("$management")
	for len(mgmt.owned()) < 4 {
		<-time.After(10 * time.Millisecond)
	}
	for range 20 {
		mgmt.ask(names.GroupRewind, map[string]any{"partition": int32(-1), "earliest": true}, 200)
	}
	mgmt.owned() // an answer behind the last assignment, which is told after the rewind is answered
	if err := r.IssueCredit(5); err != nil {
		t.Fatal(err)
	}
	got := p.assigned(r, 4)
	if epochs := got["epochs"].([]int64); epochs[0] != 21 || epochs[3] != 21 {
		t.Errorf("the first assignment has the epochs %v, want the newest", epochs)
	}
	if m := r.Prefetched(); m != nil {
		t.Errorf("there is another: %v", m.Value)
	}
}

// owned returns the partitions that have an owner.
func (r *rpc) owned() (ps []int32) {
	r.p.t.Helper()
	fields := r.ask(names.GroupRead, nil, 200)
	for i, owner := range fields["owners"].([]string) {
		if owner != "" {
			ps = append(ps, fields["partitions"].([]int32)[i])
		}
	}
	return ps
}

func TestPartitionsOfALostConnectionMove(t *testing.T) {
	b := start(t)
	first, second := b.login(t, listenRule), b.login(t, listenRule)
	one := first.receiver(groupG, joining("one", "1"))
	first.assigned(one, 4)
	two := second.receiver(groupG, joining("two", "1"))
	first.Close()
	lost := time.Now()
	second.assigned(two, 4)
	if took := time.Since(lost); took > 8*time.Second { // one that is silent is waited for longer
		t.Errorf("they moved after %v", took)
	}
	// A link that is detached is gone as well.
	third := b.login(t, listenRule)
	three := third.receiver(groupG, joining("three", "1"))
	if err := two.Close(second.ctx()); err != nil {
		t.Fatal(err)
	}
	third.assigned(three, 4)
}

// A member loses its link with its right, its group or its hub.
func TestMembersOfWhatIsGone(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	group, hub := p.receiver(groupG, joining("m", "1")), p.receiver("h/ConsumerGroups/$Default", joining("m", "1"))
	p.assigned(group, 4)
	p.assigned(hub, 4)
	if err := b.broker.DeleteConsumerGroup(t.Context(), "h", "g"); err != nil {
		t.Fatal(err)
	}
	ended := func(what string, r *amqp.Receiver, condition string) {
		t.Helper()
		for {
			if _, err := r.Receive(p.ctx(), nil); err != nil {
				wantCondition(t, what, err, condition)
				return
			}
		}
	}
	ended("the group is deleted", group, names.NotFound)
	if _, err := b.broker.UpdateHub(t.Context(), entity.Hub{Name: "h", PartitionCount: 4, Status: entity.ReceiveDisabled}); err != nil {
		t.Fatal(err)
	}
	ended("the hub is disabled", hub, names.EntityDisabled)
	if used := b.service.Held(); used.Connections != 1 {
		t.Errorf("held %+v", used)
	}
}

// A process whose connection is lost while it leaves can leave by another one: else its
// partitions would wait for it.
func TestLeavingByAnotherConnection(t *testing.T) {
	b := start(t)
	first, second, third := b.login(t, listenRule), b.login(t, listenRule), b.login(t, listenRule)
	o := joining("m", "1")
	o.Properties[names.MemberKeep] = uint32(time.Hour.Milliseconds())
	first.assigned(first.receiver(groupG, o), 4)
	other := second.receiver(groupG, joining("other", "1"))
	second.assigned(other, 0)
	first.Close()
	mgmt := third.rpc("$management")
	mgmt.ask(names.GroupLeave, map[string]any{"member": "m"}, 404)
	mgmt.ask(names.GroupLeave, map[string]any{"member": "m", "run": "2"}, 410)
	mgmt.ask(names.GroupLeave, map[string]any{"member": "m", "run": "1"}, 204)
	second.assigned(other, 4)
}
