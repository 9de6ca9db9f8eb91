// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/access/accesstest"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/entity"
)

// joining attaches a member to the group g of the hub h.
func joining(id, run string) *amqp.ReceiverOptions {
	return &amqp.ReceiverOptions{Credit: 10, Properties: map[string]any{names.Member: id, names.MemberRun: run}}
}

const groupG = "h/ConsumerGroups/g"

// ask sends a request about the group g, with the status wanted; it returns the body.
func (r *rpc) ask(operation string, body map[string]any, status int32) map[string]any {
	r.p.t.Helper()
	full := map[string]any{names.GroupName: "g"}
	maps.Copy(full, body)
	reply := r.call(operation, full, map[string]any{names.ReadName: "h"})
	if got := reply.ApplicationProperties["statusCode"]; got != status {
		r.p.t.Errorf("%s %v: status %v (%v), want %d", operation, body, got, reply.ApplicationProperties["statusDescription"], status)
	}
	m, _ := reply.Value.(map[string]any)
	return m
}

func TestOddRequestsAboutGroupsAreRefused(t *testing.T) {
	p := start(t).login(t, rootRule)
	ints, longs := func(n ...int32) []int32 { return n }, func(n ...int64) []int64 { return n }
	many := make([]int32, 2000)
	long := strings.Repeat("x", 257)
	for _, node := range []string{"$management", "h/$management"} {
		mgmt := p.rpc(node)
		for _, tt := range []struct {
			operation string
			body      map[string]any
			status    int32
		}{
			{names.GroupCheckpoint, map[string]any{}, 400},
			{names.GroupCheckpoint, map[string]any{"partitions": ints()}, 400},
			{names.GroupCheckpoint, map[string]any{"partitions": "0"}, 400},
			{names.GroupCheckpoint, map[string]any{"partitions": []string{"0"}, "epochs": longs(1), "sequence-numbers": longs(1)}, 400},
			{names.GroupCheckpoint, map[string]any{"partitions": ints(0, 1), "epochs": longs(1), "sequence-numbers": longs(1, 2)}, 400},
			{names.GroupCheckpoint, map[string]any{"partitions": ints(0), "epochs": longs(1, 2), "sequence-numbers": longs(1)}, 400},
			{names.GroupCheckpoint, map[string]any{"partitions": ints(0), "epochs": longs(1)}, 400},
			{names.GroupCheckpoint, map[string]any{"partitions": ints(0), "epochs": longs(1), "sequence-numbers": longs(-1)}, 400},
			{names.GroupCheckpoint, map[string]any{"partitions": ints(0), "epochs": longs(1), "sequence-numbers": []string{"x"}}, 400},
			{names.GroupCheckpoint, map[string]any{"partitions": ints(0), "epochs": longs(-1), "sequence-numbers": longs(1)}, 400},
			{names.GroupCheckpoint, map[string]any{"partitions": ints(4), "epochs": longs(1), "sequence-numbers": longs(1)}, 404},
			{names.GroupCheckpoint, map[string]any{"partitions": ints(-1), "epochs": longs(1), "sequence-numbers": longs(1)}, 404},
			{names.GroupCheckpoint, map[string]any{"partitions": many, "epochs": longs(1), "sequence-numbers": longs(1)}, 400},
			{names.GroupCheckpoint, map[string]any{"group": "none", "partitions": ints(0), "epochs": longs(1), "sequence-numbers": longs(1)}, 404},
			{names.GroupRead, map[string]any{"group": int32(7)}, 400},
			{names.GroupRead, map[string]any{"group": ""}, 400},
			{names.GroupRead, map[string]any{"group": "none"}, 404},
			{names.GroupRead, map[string]any{"group": "g/Partitions/0"}, 400},
			{names.GroupReport, map[string]any{}, 400},
			{names.GroupReport, map[string]any{"member": "nobody"}, 404},
			{names.GroupLeave, map[string]any{"member": "nobody"}, 404},
			{names.GroupLeave, map[string]any{"member": int32(1)}, 400},
			{names.GroupRelease, map[string]any{"member": "a", "partition": "0", "epoch": int64(1)}, 400},
			{names.GroupRelease, map[string]any{"member": "a", "partition": int32(9), "epoch": int64(1)}, 404},
			{names.GroupRelease, map[string]any{"member": "a", "partition": int32(0)}, 400},
			{names.GroupRelease, map[string]any{"member": "a", "partition": int32(0), "epoch": int64(1), "cool-down": "soon"}, 400},
			{names.GroupRewind, map[string]any{"partition": int32(0)}, 400},
			{names.GroupRewind, map[string]any{"partition": int32(0), "earliest": true, "latest": true}, 400},
			{names.GroupRewind, map[string]any{"partition": int32(0), "earliest": "yes"}, 400},
			{names.GroupRewind, map[string]any{"partition": int32(0), "earliest": false}, 400},
			{names.GroupRewind, map[string]any{"partition": int32(0), "sequence-number": int64(-5)}, 400},
			{names.GroupRewind, map[string]any{"partition": int32(0), "time": "yesterday"}, 400},
			{names.GroupRewind, map[string]any{"partition": int32(7), "earliest": true}, 404},
			{names.GroupRewind, map[string]any{"partition": int32(-2), "earliest": true}, 400},
			{names.GroupPause, map[string]any{"partition": int32(0), "until": "later"}, 400},
			{names.GroupPause, map[string]any{}, 400},
			{names.GroupClaim, map[string]any{"partitions": ints(0), "owners": []string{"a", "b"}, "etags": []string{""}}, 400},
			{names.GroupClaim, map[string]any{"partitions": ints(0), "owners": []string{long}, "etags": []string{""}}, 400},
			{names.GroupClaim, map[string]any{"partitions": ints(0), "owners": []string{"a\x00"}, "etags": []string{""}}, 400},
			{names.GroupClaim, map[string]any{"partitions": ints(0), "owners": longs(1), "etags": []string{""}}, 400},
			{names.GroupSetCheckpoint, map[string]any{"partition": int32(0)}, 400},
			{names.GroupSetCheckpoint, map[string]any{"partition": int32(11), "sequence-number": int64(1)}, 404},
		} {
			mgmt.ask(tt.operation, tt.body, tt.status)
		}
		reply := mgmt.call(names.GroupRead, "g", map[string]any{names.ReadName: "h"})
		if reply.ApplicationProperties["statusCode"] != int32(400) {
			t.Errorf("a body that is no map: %v", reply.ApplicationProperties)
		}
	}
	namespace := p.rpc("$management")
	for _, name := range []string{"", "none", "q", "h/ConsumerGroups/other", "*", "h/../q"} {
		reply := namespace.call(names.GroupRead, map[string]any{names.GroupName: "g"}, map[string]any{names.ReadName: name})
		if status := reply.ApplicationProperties["statusCode"]; status == int32(200) || status == int32(500) {
			t.Errorf("the hub %q: %v", name, reply.ApplicationProperties)
		}
	}
}

func TestOddMembersAreRefused(t *testing.T) {
	b := start(t)
	p := b.login(t, listenRule)
	for what, tt := range map[string]struct {
		addr       string
		properties map[string]any
		want       string
	}{
		"a number":        {groupG, map[string]any{names.Member: int32(1), names.MemberRun: "r"}, names.ArgumentError},
		"no ID":           {groupG, map[string]any{names.Member: "", names.MemberRun: "r"}, names.ArgumentError},
		"no run":          {groupG, map[string]any{names.Member: "a"}, names.ArgumentError},
		"a long ID":       {groupG, map[string]any{names.Member: strings.Repeat("x", 257), names.MemberRun: "r"}, names.ArgumentError},
		"control":         {groupG, map[string]any{names.Member: "a\x1b", names.MemberRun: "r"}, names.ArgumentError},
		"a long name":     {groupG, map[string]any{names.Member: "a", names.MemberRun: "r", names.MemberName: strings.Repeat("x", 257)}, names.ArgumentError},
		"keep as text":    {groupG, map[string]any{names.Member: "a", names.MemberRun: "r", names.MemberKeep: "long"}, names.ArgumentError},
		"keep for a year": {groupG, map[string]any{names.Member: "a", names.MemberRun: "r", names.MemberKeep: int64(1) << 40}, names.ArgumentOutOfRange},
		"no such group":   {"h/ConsumerGroups/none", map[string]any{names.Member: "a", names.MemberRun: "r"}, names.NotFound},
		"a partition":     {groupG + "/Partitions/0", map[string]any{names.Member: "a", names.MemberRun: "r"}, names.NotAllowed},
		"a disabled hub":  {"off/ConsumerGroups/$Default", map[string]any{names.Member: "a", names.MemberRun: "r"}, names.EntityDisabled},
	} {
		err := p.attachReceiver(tt.addr, &amqp.ReceiverOptions{Credit: 1, Properties: tt.properties})
		wantCondition(t, what, err, tt.want)
	}
	err := b.login(t, sendRule).attachReceiver(groupG, joining("a", "r"))
	wantCondition(t, "without Listen", err, names.UnauthorizedAccess)
}

// The right to listen to a group is needed, and enough.
func TestRequestsAboutGroupsNeedListen(t *testing.T) {
	b := start(t)
	reply := b.login(t, sendRule).rpc("h/$management").call(names.GroupRead, map[string]any{names.GroupName: "g"}, nil)
	if reply.ApplicationProperties["statusCode"] != int32(401) {
		t.Errorf("a sender: %v", reply.ApplicationProperties)
	}
	if _, err := b.broker.CreateHub(t.Context(), entity.Hub{Name: "other", AuthorizationRules: accesstest.Rules("other")}); err != nil {
		t.Fatal(err)
	}
	p := b.dial(t, &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()})
	cbs := p.rpc("$cbs")
	key := accesstest.Key("other", access.Listen)
	if r := cbs.put(key, "other/ConsumerGroups/$Default", time.Now().Add(time.Hour)); r.ApplicationProperties["status-code"] != int32(202) {
		t.Fatalf("token: %v", r.ApplicationProperties)
	}
	mgmt := p.rpc("$management")
	for hub, refused := range map[string]bool{"other": false, "h": true} {
		r := mgmt.call(names.GroupRead, map[string]any{names.GroupName: "$Default"}, map[string]any{names.ReadName: hub})
		if (r.ApplicationProperties["statusCode"] == int32(401)) != refused {
			t.Errorf("group of %s: %v", hub, r.ApplicationProperties)
		}
	}
}
