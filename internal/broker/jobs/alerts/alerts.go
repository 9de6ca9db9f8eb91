// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/broker/jobs"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queue"
)

// Alert says that the state of an objective, of an expected rate, or of a queue that
// may be saturated, has changed, or that messages could not be read.
type Alert struct {
	At      time.Time         `json:"at"`
	Entity  string            `json:"entity"`
	Class   string            `json:"class"`
	Subject objective.Subject `json:"subject"`
	From    objective.State   `json:"from"`
	To      objective.State   `json:"to"`
	Why     string            `json:"why"`

	// Hook is where the policy has alerts sent.
	Hook policy.Alerts `json:"-"`
}

// alerts queues alerts from the shards for the hooks.
type alerts struct {
	b   *Broker
	job *jobs.Handle

	mu      sync.Mutex
	hooks   []func(Alert) // guarded by mu
	pending []Alert       // guarded by mu; at most maxAlerts
	lost    int           // guarded by mu; dropped because pending was full
}

// maxAlerts bounds the pending alerts. States change rarely, so the bound is reached only
// if a hook blocks.
const maxAlerts = 4096

func newAlerts(b *Broker) *alerts {
	a := &alerts{b: b}
	a.job = b.runner.Add(a)
	return a
}

// OnAlert has fn called with every alert, one at a time. It runs in the job of alerts and
// must not block.
func (b *Broker) OnAlert(fn func(Alert)) {
	b.alerts.mu.Lock()
	defer b.alerts.mu.Unlock()
	b.alerts.hooks = append(b.alerts.hooks, fn)
}

// raise queues the changes of a queue as alerts; nil is a queue that was deleted. It never
// blocks.
func (b *Broker) raise(n *catalog.Entity, changes []objective.Change) {
	if n == nil || len(changes) == 0 {
		return
	}
	hook := n.Definition().Classifier.Policy.Alerts
	var as []Alert
	for _, c := range changes {
		as = append(as, Alert{
			At: c.At.UTC(), Entity: n.Path, Class: c.Name, Subject: c.Subject, From: c.From, To: c.To, Why: c.Why, Hook: hook,
		})
	}
	b.alert(as...)
}

// alert queues alerts. It never blocks.
func (b *Broker) alert(as ...Alert) {
	a := b.alerts
	a.mu.Lock()
	fit := min(len(as), maxAlerts-len(a.pending))
	a.pending = append(a.pending, as[:fit]...)
	a.lost += len(as) - fit
	a.mu.Unlock()
	a.job.Wake()
}

// Name implements jobs.Job.
func (a *alerts) Name() string { return "alerts" }

// Run implements jobs.Job: it sends the pending alerts.
func (a *alerts) Run(ctx context.Context) (jobs.Next, error) {
	a.mu.Lock()
	pending, hooks, lost := a.pending, a.hooks, a.lost
	a.pending, a.lost = nil, 0
	a.mu.Unlock()
	var err error
	if lost > 0 {
		err = fmt.Errorf("%d alerts lost", lost)
		a.b.log.LogAttrs(ctx, slog.LevelError, "alerts lost: too many at once", slog.Int("count", lost))
	}
	for _, x := range pending {
		a.b.log.LogAttrs(ctx, x.level(), "objective changed", slog.String("entity", x.Entity), slog.String("class", x.Class),
			slog.String("subject", string(x.Subject)), slog.String("from", x.From.String()), slog.String("to", x.To.String()),
			slog.String("reason", x.Why))
		a.b.publish(ctx, x)
		for _, fn := range hooks {
			fn(x)
		}
	}
	return jobs.Next{}, err
}

// level is that of the log line: an objective that is missed needs action.
func (a Alert) level() slog.Level {
	switch a.To {
	case objective.Missed:
		return slog.LevelError
	case objective.AtRisk:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// priority is that of an alert as a message: bad news first.
func (a Alert) priority() string {
	switch a.To {
	case objective.Missed:
		return "critical"
	case objective.AtRisk:
		return "high"
	}
	return "normal"
}

// Body returns the alert as it is sent, in JSON.
func (a Alert) Body() []byte {
	body, err := json.Marshal(a)
	if err != nil {
		panic("broker: an alert is not JSON: " + err.Error()) // it has only text and time
	}
	return body
}

// publish sends an alert to the subscriptions of the topic of alerts.
func (b *Broker) publish(ctx context.Context, a Alert) {
	topic := b.Entity(AlertsTopic)
	if topic == nil {
		return // there is no subscription
	}
	d := message.Draft{Body: a.Body()}
	for name, value := range map[string]string{
		"entity": a.Entity, "class": a.Class, "subject": string(a.Subject),
		"from": a.From.String(), "to": a.To.String(), policy.PriorityProperty: a.priority(),
	} {
		d.Application = append(d.Application, message.Pair{Name: name, Value: codec.String(value)})
	}
	b.Catalog.Send(topic, []*message.Message{d.Message()}, catalog.SendOptions{}, func(_ []queue.SeqNo, err error) {
		if err != nil && ctx.Err() == nil {
			b.log.LogAttrs(ctx, slog.LevelWarn, "alert not published", slog.String("entity", a.Entity), slog.Any("err", err))
		}
	})
}
