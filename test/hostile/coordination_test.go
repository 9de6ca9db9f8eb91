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
	const members, most = wide, 256
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
