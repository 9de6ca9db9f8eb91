// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// damages queues the messages that became dead letters because their bodies cannot be
// read, from the shards for the log and the alerts.
type damages struct {
	total atomic.Uint64

	mu      sync.Mutex
	pending []queueserver.Damage // guarded by mu; at most maxDamages
	more    int                  // guarded by mu; beyond them
}

// maxDamages is how many are logged one by one in a round.
const maxDamages = 100

// Unreadable returns how many messages became dead letters, since the start, because
// their bodies could not be read.
func (a *Alerts) Unreadable() uint64 { return a.damages.total.Load() }

// Damaged queues a message that a shard has found. It is called on the shard's goroutine.
func (a *Alerts) Damaged(d queueserver.Damage) {
	x := &a.damages
	x.total.Add(1)
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.pending) < maxDamages {
		x.pending = append(x.pending, d)
	} else {
		x.more++
	}
}

// ReportDamages logs the messages that were found since the last round, and raises one alert
// for each entity.
func (a *Alerts) ReportDamages(ctx context.Context) {
	x := &a.damages
	x.mu.Lock()
	pending, more := x.pending, x.more
	x.pending, x.more = nil, 0
	x.mu.Unlock()
	counts := make(map[string]int)
	var names []string
	for _, d := range pending {
		a.log.LogAttrs(ctx, slog.LevelError, "message body is unreadable: the message is a dead letter now; run journal verify on the stopped store",
			slog.String("entity", d.Name), slog.Uint64("sequence", uint64(d.Seq)), slog.Any("err", d.Err))
		if counts[d.Name]++; counts[d.Name] == 1 {
			names = append(names, d.Name)
		}
	}
	if more > 0 {
		a.log.LogAttrs(ctx, slog.LevelError, "more message bodies are unreadable", slog.Int("count", more))
	}
	for _, name := range names {
		x := Alert{At: time.Now().UTC(), Entity: name, Subject: objective.OfDamage, From: objective.Met, To: objective.Missed,
			Why: fmt.Sprintf("%d messages could not be read from the disk; they are among the dead letters", counts[name])}
		if n := a.catalog.Entity(name); n != nil {
			x.Hook = n.Definition().Classifier.Policy.Alerts
		}
		a.add(x)
	}
}
