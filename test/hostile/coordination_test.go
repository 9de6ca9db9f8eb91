// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/message"
)

// coordinationScenes is the attacks by consumer groups and worker pools.
var coordinationScenes = []attack{
	{"24.06_consumer_groups", crowdedGroups},
	{"24.13_group_pause", pausesOfAll},
	{"24.13_group_restarts", restartsWithoutEnd},
	{"24.09_invented_members", inventedMembers},
	{"24.09_keep_after_revocation", keepAfterRevocation},
	{"24.11_made_up_pools", madeUpPools},
	{"24.11_orders_with_listen", ordersWithListen},
}

// wide is how many partitions the hubs of these scenes have.
const wide = 1024

// hub makes an event hub with so many consumer groups, g0 and so on, for the scene.
func (s *scene) hub(name string, partitions, groups int, more string) {
	s.Helper()
	var list []string
	for i := range groups {
		list = append(list, fmt.Sprintf(`{"name":"g%d"}`, i))
	}
	body := fmt.Sprintf(`{"name":%q,"partitionCount":%d,"consumerGroups":[%s]%s}`, name, partitions, strings.Join(list, ","), more)
	resp, text, err := s.call(s.ctx, root, http.MethodPost, "/api/v1/hubs", strings.NewReader(body), "Content-Type", "application/json")
	if err != nil || resp.StatusCode != http.StatusCreated {
		s.Fatalf("create the hub %s: %v %.300s", name, err, text)
	}
	s.Cleanup(func() {
		if _, _, err := s.call(s.ctx, root, http.MethodDelete, "/api/v1/hubs/"+name, nil); err != nil {
			s.Errorf("delete the hub %s: %v", name, err)
		}
	})
}

// manager returns a peer that can make requests about groups.
func (s *scene) manager(rule access.Rule) *dialogue {
	s.Helper()
	d, err := s.peer(rule).talk("$management", 1000)
	if err != nil {
		s.Fatal(err)
	}
	return d
}

// group makes a request about a consumer group.
func (d *dialogue) group(operation, hub, group string, pairs ...codec.Value) (int64, *message.Message, error) {
	body := codec.Map(append([]codec.Value{codec.String(names.GroupName), codec.String(group)}, pairs...)...)
	return d.ask(request(operation, body, message.Pair{Name: names.ReadName, Value: codec.String(hub)}))
}

// memberOf makes the attach of a member of a group.
func memberOf(handle uint32, hub, group, id string, keep time.Duration) *frame.Attach {
	a := receiveFrom(handle, hub+"/ConsumerGroups/"+group)
	a.Name = id
	a.Properties = codec.AppendValue(nil, codec.Map(
		codec.Symbol(names.Member), codec.String(id),
		codec.Symbol(names.MemberRun), codec.String("run of "+id),
		codec.Symbol(names.MemberKeep), codec.Int(int32(keep.Milliseconds())),
	))
	return a
}

// crowdedGroups has every partition of very many consumer groups claimed. What is claimed is
// durable and comes back at each start, so it is refused when the memory for it is used up,
// and those who have claimed go on.
func crowdedGroups(s *scene) {
	groups := scale(200, 999)
	s.hub("crowded", wide, groups, "")
	d := s.manager(root)
	partitions, owners, none := make([]int32, wide), make([]string, wide), make([]string, wide)
	for i := range partitions {
		partitions[i], owners[i] = int32(i), fmt.Sprint("process ", i)
	}
	claim := func(group int, etags []string) (int64, *message.Message, error) {
		return d.within(patience).group(names.GroupClaim, "crowded", fmt.Sprint("g", group),
			codec.String(names.GroupPartitions), codec.Raw(codec.AppendIntArray(nil, partitions)),
			codec.String(names.GroupOwners), codec.Raw(codec.AppendStringArray(nil, owners)),
			codec.String(names.GroupETags), codec.Raw(codec.AppendStringArray(nil, etags)))
	}
	claimed, refused := 0, 0
	var first []string
	for i := range groups {
		status, m, err := claim(i, none)
		if err != nil {
			s.Fatalf("claim in group %d: %v", i, err)
		}
		switch {
		case status == http.StatusOK && claimed == 0:
			body, _ := m.Value()
			v, _ := body.Lookup(names.GroupETags)
			for e := range v.List() {
				text, _ := e.Str()
				first = append(first, strings.Clone(text))
			}
			claimed++
		case status == http.StatusOK:
			claimed++
		case status == http.StatusForbidden:
			refused++
		default:
			s.Fatalf("a claim was answered with %d", status)
		}
	}
	s.Logf("%d groups of %d partitions were claimed, %d were refused", claimed, wide, refused)
	if claimed == 0 || refused == 0 {
		s.Error("some are to be accepted, and some to be refused")
	}
	if len(first) != wide {
		s.Fatalf("%d ETags, want %d", len(first), wide)
	}
	if status, _, err := claim(0, first); err != nil || status != http.StatusOK {
		s.Errorf("renewing claims is answered with %d, %v", status, err)
	}
}

// pausesOfAll pauses and resumes all partitions of a group that has as many members.
func pausesOfAll(s *scene) {
	s.hub("paused", wide, 1, "")
	const members, most = wide / 4 * 3, 256 // as many as one key may have
	for i := range members / most {
		p := s.peer(root)
		for k := range most {
			if _, err := p.within(patience).attach(memberOf(uint32(k), "paused", "g0", fmt.Sprintf("m%d-%d", i, k), 0)); err != nil {
				s.Fatalf("join as member %d: %v", i*most+k, err)
			}
		}
	}
	d := s.manager(root)
	pause(s.ctx, time.Second)
	const requests = 60
	begin := time.Now()
	for i := range requests {
		until := codec.Value{}
		if i%2 == 0 {
			until = codec.Timestamp(time.Now().Add(time.Hour))
		}
		status, _, err := d.within(patience).group(names.GroupPause, "paused", "g0",
			codec.String(names.GroupPartition), codec.Int(-1), codec.String(names.GroupUntil), until)
		if err != nil || status/100 != 2 {
			s.Fatalf("pause %d is answered with %d, %v", i, status, err)
		}
	}
	took := time.Since(begin)
	s.Logf("%d requests about %d partitions and %d members took %v", requests, wide, members, took)
	if took > 8*time.Second {
		s.Errorf("%d requests took %v", requests, took)
	}
}

// tenantKey is a key that may listen to one hub.
func tenantKey(name string) access.Rule {
	return access.Rule{Name: name, Rights: access.Listen, PrimaryKey: "the-long-key-of-" + name}
}

// tenants are the keys of a hub in its definition.
func tenants(names ...string) string {
	var rules []string
	for _, name := range names {
		rules = append(rules, fmt.Sprintf(`{"keyName": %q, "rights": ["Listen"], "primaryKey": %q}`, name, tenantKey(name).PrimaryKey))
	}
	return `"authorizationRules": [` + strings.Join(rules, ",") + `]`
}

// at returns a peer with a token for a hub or queue.
func (s *scene) at(rule access.Rule, path string) *peer {
	s.Helper()
	p := s.outsider()
	if err := p.putToken(rule, path, time.Now().Add(time.Hour), 900); err != nil {
		s.Fatal(err)
	}
	return p
}

// inventedMembers fills a consumer group with members that want to be kept for an hour, and
// leaves. Others find places.
func inventedMembers(s *scene) {
	s.hub("crowd", 16, 1, ", "+tenants("evil", "good"))
	const most = 200
	var peers []*peer
	joined, refusals := 0, 0
	for i := range 1024 {
		if i%most == 0 {
			peers = append(peers, s.at(tenantKey("evil"), "crowd"))
		}
		_, err := peers[len(peers)-1].within(patience).attach(memberOf(uint32(i%most), "crowd", "g0", fmt.Sprint("invented ", i), time.Hour))
		if err == nil {
			joined++
		} else {
			refusals++
		}
	}
	s.Logf("%d invented members have joined, %d were refused", joined, refusals)
	if joined == 0 || refusals == 0 {
		s.Error("some are to be accepted, and some to be refused")
	}
	join := func(id string) {
		s.Helper()
		if _, err := s.at(tenantKey("good"), "crowd").within(patience).attach(memberOf(0, "crowd", "g0", id, 0)); err != nil {
			s.Errorf("%s cannot join: %v", id, err)
		}
	}
	join("one while they are there")
	for _, p := range peers {
		_ = p.nc.Close()
	}
	join("one after they have left")
	for i := range 300 { // with those before, more than a group has places
		if _, err := s.at(tenantKey("good"), "crowd").within(patience).attach(memberOf(0, "crowd", "g0", fmt.Sprint("fleet ", i), 0)); err != nil {
			s.Fatalf("member %d of a fleet cannot join: %v", i, err)
		}
	}
}

// keepAfterRevocation removes the key by which members had joined that are away, and that
// want to be kept for an hour.
func keepAfterRevocation(s *scene) {
	s.hub("kept", 16, 1, ", "+tenants("evil", "good"))
	for i := range 10 {
		p := s.at(tenantKey("evil"), "kept")
		if _, err := p.attach(memberOf(0, "kept", "g0", fmt.Sprint("evil ", i), time.Hour)); err != nil {
			s.Fatal(err)
		}
		if i > 0 { // one is there still
			_ = p.nc.Close()
		}
	}
	good := s.at(tenantKey("good"), "kept")
	if _, err := good.attach(memberOf(0, "kept", "g0", "good", time.Hour)); err != nil {
		s.Fatal(err)
	}
	_ = good.nc.Close()
	pause(s.ctx, time.Second)
	s.define(http.MethodPatch, "/hubs/kept", "{"+tenants("good")+"}")
	var text string
	for range 50 {
		_, text, _ = s.call(s.ctx, root, http.MethodGet, "/api/v1/hubs/kept/groups/g0", nil)
		if !strings.Contains(text, `"id":"evil`) {
			break
		}
		pause(s.ctx, 100*time.Millisecond)
	}
	if strings.Contains(text, `"id":"evil`) {
		s.Errorf("members are kept whose key was removed: %.500s", text)
	}
	if !strings.Contains(text, `"id":"good"`) {
		s.Errorf("a member is not kept whose key is there: %.500s", text)
	}
}

// poolReport is the report of a process of a pool that is busy with so many of its 4 slots.
func poolReport(name, instance string, busy int32, more ...codec.Value) []codec.Value {
	return append([]codec.Value{
		codec.String(names.PoolName), codec.String(name), codec.String(names.PoolInstance), codec.String(instance),
		codec.String(names.PoolSlots), codec.Int(4), codec.String(names.PoolBusy), codec.Int(busy),
	}, more...)
}

// announce sends a report, and returns a flag of the answer.
func (d *dialogue) announce(flag string, report []codec.Value) (bool, error) {
	status, m, err := d.within(patience).ask(request(names.AnnouncePool, codec.Map(report...)))
	if err != nil || status != http.StatusOK {
		return false, fmt.Errorf("announce a pool: status %d, %w", status, err)
	}
	body, _ := m.Value()
	v, _ := body.Lookup(flag)
	is, _ := v.Bool()
	return is, nil
}

// madeUpPools reports a full pool at one queue, where the peer may listen, and orders that
// nobody gave. Pools at other queues go on, and nobody obeys.
func madeUpPools(s *scene) {
	tenant := s.at(ownKey, "own")
	enemy, err := tenant.talk("own/$management", 0)
	if err != nil {
		s.Fatal(err)
	}
	night, err := s.peer(listenKey).talk("first/$management", 0)
	if err != nil {
		s.Fatal(err)
	}
	elsewhere := codec.Raw(codec.AppendStringArray(nil, []string{"first", "second"})) // it may not listen there
	for i := range 20 {
		if _, err := enemy.announce(names.PoolSpare, poolReport("full", fmt.Sprint(i), 4, codec.String(names.PoolSources), elsewhere)); err != nil {
			s.Fatal(err)
		}
	}
	spare, err := night.announce(names.PoolSpare, poolReport("night", "1", 0, codec.String(names.PoolBackground), codec.Bool(true)))
	if err != nil || !spare {
		s.Errorf("a full pool at another queue leaves no spare capacity: %t, %v", spare, err)
	}
	pause := poolReport("day", "enemy", 0, codec.String(names.PoolOrderedPause), codec.Bool(true),
		codec.String(names.PoolRevision), codec.Long(time.Now().UnixMilli()), codec.String(names.PoolSeal), codec.String("made up"))
	for _, instance := range []string{"enemy", "victim"} {
		report := pause
		if instance == "victim" {
			report = poolReport("day", instance, 0)
		}
		if paused, err := night.announce(names.PoolPaused, report); err != nil || paused {
			s.Errorf("the %s is told to pause: %t, %v", instance, paused, err)
		}
	}
}

// ordersWithListen asks for what changes the work of others, with no more than Listen.
func ordersWithListen(s *scene) {
	s.hub("ordered", 4, 1, "")
	victim := s.peer(listenKey)
	if _, err := victim.attach(memberOf(0, "ordered", "g0", "victim", 0)); err != nil {
		s.Fatal(err)
	}
	pause(s.ctx, time.Second) // it has its partitions
	d := s.manager(listenKey)
	all := []codec.Value{codec.String(names.GroupPartition), codec.Int(-1)}
	one := []codec.Value{codec.String(names.GroupPartition), codec.Int(0)}
	for what, r := range map[string]struct {
		operation string
		pairs     []codec.Value
	}{
		"pause":   {names.GroupPause, append(all, codec.String(names.GroupUntil), codec.Timestamp(time.Now().Add(time.Hour)))},
		"resume":  {names.GroupPause, all},
		"rewind":  {names.GroupRewind, append(all, codec.String(names.GroupEarliest), codec.Bool(true))},
		"release": {names.GroupRelease, append(one, codec.String(names.GroupMember), codec.String("victim"), codec.String(names.GroupEpoch), codec.Long(1))},
	} {
		if status, _, err := d.within(patience).group(r.operation, "ordered", "g0", r.pairs...); err != nil || status != http.StatusUnauthorized {
			s.Errorf("%s is answered with %d, %v", what, status, err)
		}
	}
	for _, path := range []string{"/hubs/ordered/groups/g0/pause", "/pools/night/pause", "/pools/night/pause?source=first"} {
		resp, text, err := s.call(s.ctx, listenKey, http.MethodPost, "/api/v1"+path, strings.NewReader("{}"))
		if err != nil || resp.StatusCode != http.StatusForbidden {
			s.Errorf("%s is answered with %v %s, %v", path, resp, text, err)
		}
	}
}
