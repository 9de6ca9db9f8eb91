// SPDX-License-Identifier: Apache-2.0

package broker

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
func (b *Broker) Unreadable() uint64 { return b.damages.total.Load() }

// damaged queues a message that a shard has found. It is called on the shard's goroutine.
func (b *Broker) damaged(d queueserver.Damage) {
	x := &b.damages
	x.total.Add(1)
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.pending) < maxDamages {
		x.pending = append(x.pending, d)
	} else {
		x.more++
	}
}

// reportDamages logs the messages that were found since the last round, and raises one alert
// for each entity.
func (b *Broker) reportDamages(ctx context.Context) {
	x := &b.damages
	x.mu.Lock()
	pending, more := x.pending, x.more
	x.pending, x.more = nil, 0
	x.mu.Unlock()
	counts := make(map[string]int)
	var names []string
	for _, d := range pending {
		b.log.LogAttrs(ctx, slog.LevelError, "message body is unreadable: the message is a dead letter now; run journal verify on the stopped store",
			slog.String("entity", d.Name), slog.Uint64("sequence", uint64(d.Seq)), slog.Any("err", d.Err))
		if counts[d.Name]++; counts[d.Name] == 1 {
			names = append(names, d.Name)
		}
	}
	if more > 0 {
		b.log.LogAttrs(ctx, slog.LevelError, "more message bodies are unreadable", slog.Int("count", more))
	}
	for _, name := range names {
		a := Alert{At: time.Now().UTC(), Entity: name, Subject: objective.OfDamage, From: objective.Met, To: objective.Missed,
			Why: fmt.Sprintf("%d messages could not be read from the disk; they are among the dead letters", counts[name])}
		if n := b.Entity(name); n != nil {
			a.Hook = n.Definition().Classifier.Policy.Alerts
		}
		b.alert(a)
	}
}
