// SPDX-License-Identifier: Apache-2.0

package alerts

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

// Catalog is what alerts need of the catalog of entities.
type Catalog interface {
	Entity(path string) *catalog.Entity
	Send(n *catalog.Entity, batch []*message.Message, o catalog.SendOptions, done func([]queue.SeqNo, error))
}

// Alerts queues alerts from the shards. Its job logs them, publishes them to the topic of
// alerts and calls the hooks.
type Alerts struct {
	catalog Catalog
	log     *slog.Logger
	job     *jobs.Handle
	damages damages

	mu      sync.Mutex
	hooks   []func(Alert) // guarded by mu
	pending []Alert       // guarded by mu; at most maxAlerts
	lost    int           // guarded by mu; dropped because pending was full
}

// maxAlerts bounds the pending alerts. States change rarely, so the bound is reached only
// if a hook blocks.
const maxAlerts = 4096

// New returns alerts without hooks; runner runs the job.
func New(c Catalog, runner *jobs.Runner, log *slog.Logger) *Alerts {
	a := &Alerts{catalog: c, log: log}
	a.job = runner.Add(a)
	return a
}

// OnAlert has fn called with every alert, one at a time. It runs in the job of alerts and
// must not block.
func (a *Alerts) OnAlert(fn func(Alert)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hooks = append(a.hooks, fn)
}

// Raise queues the changes of a queue as alerts; nil is a queue that was deleted. It never
// blocks.
func (a *Alerts) Raise(n *catalog.Entity, changes []objective.Change) {
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
	a.add(as...)
}

// add queues alerts. It never blocks.
func (a *Alerts) add(as ...Alert) {
	a.mu.Lock()
	fit := min(len(as), maxAlerts-len(a.pending))
	a.pending = append(a.pending, as[:fit]...)
	a.lost += len(as) - fit
	a.mu.Unlock()
	a.job.Wake()
}

// Name implements jobs.Job.
func (a *Alerts) Name() string { return "alerts" }

// Run implements jobs.Job: it sends the pending alerts.
func (a *Alerts) Run(ctx context.Context) (jobs.Next, error) {
	a.mu.Lock()
	pending, hooks, lost := a.pending, a.hooks, a.lost
	a.pending, a.lost = nil, 0
	a.mu.Unlock()
	var err error
	if lost > 0 {
		err = fmt.Errorf("%d alerts lost", lost)
		a.log.LogAttrs(ctx, slog.LevelError, "alerts lost: too many at once", slog.Int("count", lost))
	}
	for _, x := range pending {
		a.log.LogAttrs(ctx, x.level(), "objective changed", slog.String("entity", x.Entity), slog.String("class", x.Class),
			slog.String("subject", string(x.Subject)), slog.String("from", x.From.String()), slog.String("to", x.To.String()),
			slog.String("reason", x.Why))
		a.publish(ctx, x)
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
		panic("alerts: an alert is not JSON: " + err.Error()) // it has only text and time
	}
	return body
}

// publish sends an alert to the subscriptions of the topic of alerts.
func (a *Alerts) publish(ctx context.Context, x Alert) {
	topic := a.catalog.Entity(catalog.AlertsTopic)
	if topic == nil {
		return // there is no subscription
	}
	d := message.Draft{Body: x.Body()}
	for name, value := range map[string]string{
		"entity": x.Entity, "class": x.Class, "subject": string(x.Subject),
		"from": x.From.String(), "to": x.To.String(), policy.PriorityProperty: x.priority(),
	} {
		d.Application = append(d.Application, message.Pair{Name: name, Value: codec.String(value)})
	}
	a.catalog.Send(topic, []*message.Message{d.Message()}, catalog.SendOptions{}, func(_ []queue.SeqNo, err error) {
		if err != nil && ctx.Err() == nil {
			a.log.LogAttrs(ctx, slog.LevelWarn, "alert not published", slog.String("entity", x.Entity), slog.Any("err", err))
		}
	})
}
