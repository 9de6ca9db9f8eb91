// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/servicebus/management"
)

// Every request is in the table of rights, and every row of it is served.
func TestRequestsAreInTheTableOfRights(t *testing.T) {
	left := map[string]bool{}
	for _, o := range access.Operations() {
		for _, name := range o.AMQP {
			left[name] = true
		}
	}
	served := append(slices.Collect(maps.Keys(groupOperations)), names.Read)
	for _, name := range append(served, management.Names()...) {
		if !left[name] {
			t.Errorf("%s is not in the table of rights", name)
		}
		delete(left, name)
	}
	for name := range left {
		t.Errorf("the table of rights has %s, which nobody serves", name)
	}
}

// Listen is enough for what is one's own. What changes the work of others needs Manage.
func TestOthersWorkNeedsManage(t *testing.T) {
	b := start(t)
	p := b.login(t, listenRule)
	victim := b.login(t, listenRule)
	victim.assigned(victim.receiver(groupG, joining("victim", "secret run")), 4)
	mgmt := p.rpc("$management")
	soon := time.Now().Add(time.Hour)
	requests := []struct {
		operation string
		body      map[string]any
	}{
		{names.GroupPause, map[string]any{"partition": int32(0), "until": soon}},
		{names.GroupPause, map[string]any{"partition": int32(-1)}},
		{names.GroupRewind, map[string]any{"partition": int32(0), "earliest": true}},
		{names.GroupRewind, map[string]any{"partition": int32(-1), "latest": true}},
		{names.GroupRelease, map[string]any{"member": "victim", "partition": int32(0), "epoch": int64(1)}},
	}
	for _, r := range requests {
		mgmt.ask(r.operation, r.body, 401)
	}
	mgmt.ask(names.GroupRelease, map[string]any{"member": "victim", "run": "a guess", "partition": int32(0), "epoch": int64(1)}, 404)
	manager := b.login(t, rootRule).rpc("$management")
	manager.ask(names.GroupPause, requests[0].body, 204)
	manager.ask(names.GroupPause, requests[1].body, 204)
	manager.ask(names.GroupRewind, requests[2].body, 200)
}

// A member needs Listen only for the partitions that it has.
func TestOwnPartitionsNeedListen(t *testing.T) {
	b := start(t)
	p := b.login(t, listenRule)
	r := p.receiver(groupG, joining("a", "the run"))
	p.assigned(r, 4)
	mgmt := p.rpc("$management")
	mgmt.ask(names.GroupRewind, map[string]any{"partition": int32(0), "earliest": true}, 200)
	mgmt.ask(names.GroupRewind, map[string]any{"partition": int32(-1), "earliest": true}, 200) // it has all
	release := func(n int, epoch int64, run string) map[string]any {
		body := map[string]any{"member": "a", "partition": int32(n), "epoch": epoch, "cool-down": int64(60_000)}
		if run != "" {
			body["run"] = run
		}
		return body
	}
	mgmt.ask(names.GroupRelease, release(0, 3, ""), 204)
	mgmt.ask(names.GroupRewind, map[string]any{"partition": int32(1), "earliest": true}, 200)
	// By another connection of the same process.
	other := b.login(t, listenRule).rpc("$management")
	other.ask(names.GroupRelease, release(2, 2, "the run"), 204)
	other.ask(names.GroupRelease, release(3, 2, ""), 401)
	other.ask(names.GroupRewind, map[string]any{"partition": int32(1), "earliest": true}, 401)
}
