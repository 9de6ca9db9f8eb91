// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
)

const groupG = apiRoot + "/hubs/h/groups/g"

// member is a member of the group g of the hub h, with what it is assigned.
type member struct {
	*broker.GroupMember
	assigned chan broker.Assignment
}

func (r *rig) join(id string) *member {
	r.t.Helper()
	m := &member{assigned: make(chan broker.Assignment, 100)}
	var err error
	m.GroupMember, err = r.b.JoinGroup(r.t.Context(), "h/ConsumerGroups/g", broker.MemberOptions{
		ID: id, Run: "1", Name: "host of " + id, Changed: func(a broker.Assignment) { m.assigned <- a }, Ended: func(error) {},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(m.Gone)
	return m
}

// until waits for an assignment as wanted.
func (m *member) until(t *testing.T, want func(broker.Assignment) bool) broker.Assignment {
	t.Helper()
	var a broker.Assignment
	for end := time.After(30 * time.Second); ; {
		select {
		case a = <-m.assigned:
			if want(a) {
				return a
			}
		case <-end:
			t.Fatalf("the last assignment is %+v", a)
		}
	}
}

func (r *rig) group() GroupEntity {
	r.t.Helper()
	var g GroupEntity
	r.want(200, "GET", groupG, "").into(r.t, &g)
	return g
}

func TestGroupWithMembers(t *testing.T) {
	r := start(t)
	r.hub(entity.Hub{Name: "h", PartitionCount: 2, ConsumerGroups: []entity.ConsumerGroup{{Name: "g"}}})
	if s := r.group().State; s == nil || len(s.Members) != 0 || len(s.Partitions) != 2 || s.Partitions[1].State != "free" || s.Partitions[1].Checkpoint != nil {
		t.Fatalf("before the first member %+v", s)
	}
	r.publish("h/Partitions/1", 3, 2)
	m := r.join("m")
	has := func(n int) func(broker.Assignment) bool {
		return func(a broker.Assignment) bool { return len(a.Grants) == n }
	}
	m.until(t, has(2))
	each, err := r.b.CheckpointGroup(t.Context(), "h/ConsumerGroups/g", []broker.Checkpoint{{Partition: 1, Epoch: 1, SeqNo: 1}})
	if err != nil || each[0] != nil {
		t.Fatal(each, err)
	}
	m.Report(broker.MemberReport{Handled: []broker.Progress{{Partition: 1, Handled: 2, Skipped: 7}}})
	s := r.group().State
	if len(s.Members) != 1 || s.Members[0].ID != "m" || s.Members[0].Name != "host of m" || !s.Members[0].Connected || s.Members[0].Partitions != 2 || s.Members[0].Since.IsZero() {
		t.Errorf("members %+v", s.Members)
	}
	p := s.Partitions[1]
	if p.ID != "1" || p.State != "owned" || p.Owner != "m" || p.Epoch != 1 || p.Checkpoint == nil || *p.Checkpoint != 1 || p.CheckpointAgeSeconds == nil ||
		p.Handled == nil || *p.Handled != 2 || p.LagEvents != 2 || p.LagBytes <= 0 || p.Stuck || p.PausedUntil != nil || p.Since == nil {
		t.Errorf("partition %+v", p)
	}
	if len(s.Changes) != 2 || s.Changes[0].To != "m" || s.Changes[0].Why == "" {
		t.Errorf("changes %+v", s.Changes)
	}
	got := r.want(200, "GET", "/metrics", "").body
	for _, want := range []string{
		`triagemq_hub_group_members{group="g",hub="h"} 1`,
		`triagemq_hub_group_owner_changes_total{group="g",hub="h"} `,
		`triagemq_hub_group_partition_owned{group="g",hub="h",partition="1"} 1`,
		`triagemq_hub_group_partition_epoch{group="g",hub="h",partition="1"} 1`,
		`triagemq_hub_group_partition_lag_events{group="g",hub="h",partition="1"} 2`,
		`triagemq_hub_group_partition_lag_bytes{group="g",hub="h",partition="1"} `,
		`triagemq_hub_group_partition_lag_seconds{group="g",hub="h",partition="1"} `,
		`triagemq_hub_group_partition_stuck{group="g",hub="h",partition="1"} 0`,
		`triagemq_hub_group_partition_gone_events{group="g",hub="h",partition="1"} 0`,
		`triagemq_hub_group_partition_skipped_events{group="g",hub="h",partition="1"} 7`,
		`triagemq_hub_group_partition_checkpoint_age_seconds{group="g",hub="h",partition="1"} `,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	for _, odd := range []string{`group_members{group="$Default"`, `checkpoint_age_seconds{group="g",hub="h",partition="0"}`} {
		if strings.Contains(got, odd) {
			t.Errorf("metrics have %s", odd)
		}
	}
}

func TestRewindReleasePauseResume(t *testing.T) {
	r := start(t)
	r.hub(entity.Hub{Name: "h", PartitionCount: 2, ConsumerGroups: []entity.ConsumerGroup{{Name: "g"}}})
	r.publish("h/Partitions/1", 1, 1, 1, 1)
	m := r.join("m")
	epoch := int64(0)
	newer := func(a broker.Assignment) bool {
		for _, g := range a.Grants {
			if g.Partition == 1 && g.Epoch > epoch && g.RevokeBy.IsZero() {
				epoch = g.Epoch
				return true
			}
		}
		return false
	}
	m.until(t, newer)
	for _, tt := range []struct {
		to   string
		want int64
	}{
		{"2", 1}, {"latest", 3}, {"earliest", int64(broker.Beginning)}, {"LATEST", 3}, {"-1h", int64(broker.Beginning)}, {"4", 3},
		{time.Now().Add(-time.Hour).Format(time.RFC3339), int64(broker.Beginning)},
	} {
		var g GroupEntity
		r.want(200, "POST", groupG+"/rewind", fmt.Sprintf(`{"partition":1,"to":%q}`, tt.to)).into(t, &g)
		if p := g.State.Partitions[1]; p.Checkpoint == nil || *p.Checkpoint != tt.want {
			t.Errorf("rewound to %s: %+v, want the checkpoint %d", tt.to, p, tt.want)
		}
		m.until(t, newer)
	}
	r.want(200, "POST", groupG+"/rewind", `{"to":"latest"}`)
	m.until(t, newer)

	r.want(200, "POST", groupG+"/pause", `{"partition":1,"for":"1h"}`)
	if p := r.group().State.Partitions[1]; p.PausedUntil == nil || time.Until(*p.PausedUntil) < 50*time.Minute || time.Until(*p.PausedUntil) > time.Hour {
		t.Errorf("paused for an hour: %+v", p)
	}
	r.want(200, "POST", groupG+"/pause", `{}`)
	for _, p := range r.group().State.Partitions {
		if p.PausedUntil == nil || time.Until(*p.PausedUntil) < 24*365*time.Hour {
			t.Errorf("paused: %+v", p)
		}
	}
	r.want(200, "POST", groupG+"/resume", `{}`)
	if p := r.group().State.Partitions[1]; p.PausedUntil != nil {
		t.Errorf("resumed: %+v", p)
	}
	other := r.join("other")
	a := m.until(t, func(a broker.Assignment) bool {
		return len(a.Grants) == 2 && (!a.Grants[0].RevokeBy.IsZero() || !a.Grants[1].RevokeBy.IsZero())
	})
	for _, g := range a.Grants {
		if !g.RevokeBy.IsZero() {
			if err := r.b.ReleaseGroup(t.Context(), "h/ConsumerGroups/g", broker.MemberRun{ID: "m"}, g.Partition, g.Epoch, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := other.until(t, func(a broker.Assignment) bool { return len(a.Grants) == 1 })
	r.want(200, "POST", groupG+"/release", fmt.Sprintf(`{"partition":%d,"coolDown":"5m"}`, got.Grants[0].Partition))
	other.until(t, func(a broker.Assignment) bool { return len(a.Grants) == 1 && !a.Grants[0].RevokeBy.IsZero() })
}

func TestOddActionsOnGroups(t *testing.T) {
	r := start(t)
	r.hub(entity.Hub{Name: "h", PartitionCount: 2, ConsumerGroups: []entity.ConsumerGroup{{Name: "g"}}})
	for _, tt := range []struct {
		status     int
		path, body string
	}{
		{400, "/rewind", `{}`},
		{400, "/rewind", `{"to":"yesterday"}`},
		{400, "/rewind", `{"to":"-5"}`},
		{400, "/rewind", `{"to":""}`},
		{400, "/rewind", `{"to":5}`},
		{400, "/rewind", `{"to":"earliest","partitions":[1]}`},
		{400, "/rewind", `{"to":"earliest","partition":"1"}`},
		{404, "/rewind", `{"to":"earliest","partition":2}`},
		{404, "/rewind", `{"to":"earliest","partition":-1}`},
		{400, "/rewind", ``},
		{400, "/release", `{}`},
		{404, "/release", `{"partition":7}`},
		{409, "/release", `{"partition":0}`},
		{400, "/release", `{"partition":0,"coolDown":"soon"}`},
		{400, "/pause", `{"for":"ever"}`},
		{404, "/pause", `{"partition":2}`},
		{404, "/resume", `{"partition":2}`},
	} {
		r.want(tt.status, "POST", groupG+tt.path, tt.body)
	}
	r.want(404, "POST", apiRoot+"/hubs/h/groups/none/rewind", `{"to":"earliest"}`)
	r.want(404, "POST", apiRoot+"/hubs/none/groups/g/rewind", `{"to":"earliest"}`)
	if got := r.as("listener", "POST", groupG+"/rewind", `{"to":"earliest"}`); got.status != 403 {
		t.Errorf("with the right to listen: %d, want 403", got.status)
	}
}
