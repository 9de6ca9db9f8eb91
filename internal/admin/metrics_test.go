// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/entity"
)

func TestMetrics(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.topic("t", entity.Subscription{Name: "s"})
	r.want(201, "POST", "/q/messages", "x", "Priority", "High")
	r.want(201, "POST", "/q/messages", "x")
	r.want(201, "POST", "/t/messages", "x", "Priority", `"hgih"`) // no level, and no name of one
	r.want(201, "POST", "/t/messages", "x", "Priority", "300")
	r.want(201, "POST", "/t/messages", "x", "Priority", `"7"`)
	r.want(201, "POST", "/q/messages/head?timeout=5", "")
	got := r.want(200, "GET", "/metrics", "")
	for _, want := range []string{
		`triagemq_messages_active{entity="q",kind="queue"} 2`,
		`triagemq_messages_locked{entity="q",kind="queue"} 1`,
		`triagemq_messages_dead_lettered{entity="t/Subscriptions/s",kind="subscription"} 0`,
		`triagemq_level_messages_ready{entity="q",kind="queue",level="4"} 1`,
		`triagemq_level_oldest_seconds{entity="q",kind="queue",level="4"} `,
		`triagemq_messages_unknown_priority_total{entity="q",kind="queue"} 0`,
		`triagemq_messages_unknown_priority_total{entity="t/Subscriptions/s",kind="subscription"} 2`,
		`triagemq_entities{kind="queue"} 1`,
		`triagemq_connections 3`,
		`triagemq_shard_step_seconds_count{shard="0"} `,
		`triagemq_shard_step_longest_seconds{shard="0"} `,
		`triagemq_disk_free_bytes 5000`,
		`triagemq_disk_available_bytes 700`,
		`triagemq_disk_reserved_bytes 300`,
		`triagemq_disk_unsynced_bytes 20`,
		`triagemq_memory_limit_bytes 900`,
		`triagemq_memory_used_bytes{part="unauthenticated"} 10`,
		`triagemq_memory_used_bytes{part="authenticated"} 20`,
		`triagemq_memory_used_bytes{part="unsynced"} 30`,
		`triagemq_memory_stored_limit_bytes 800`,
		`triagemq_memory_messages_limit_bytes 600`,
		`triagemq_memory_stored_bytes{part="messages"} 4`,
		`triagemq_memory_stored_bytes{part="definitions"} 5`,
		`triagemq_memory_stored_bytes{part="groups"} 6`,
		`triagemq_memory_waiting 2`,
		`triagemq_disk_full 1`,
		`triagemq_disk_busy 0`,
		`triagemq_messages_unreadable_total 0`,
		"go_goroutines ", "process_start_time_seconds ",
	} {
		if !strings.Contains(got.body, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if got := r.as("nobody", "GET", "/metrics", ""); got.status != 401 {
		t.Errorf("without a key: %d, want 401", got.status)
	}
	if got := r.as("listener", "GET", "/metrics", ""); got.status != 200 {
		t.Errorf("with the right to listen: %d, want 200", got.status)
	}
}
