// SPDX-License-Identifier: Apache-2.0

package oldstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	switchboard "github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// state describes every entity with its messages and session states.
func (b broker) state() string {
	b.t.Helper()
	var w strings.Builder
	for _, q := range b.Queues() {
		b.entity(&w, "queue", q.Name, q)
	}
	for _, tp := range b.Topics() {
		b.entity(&w, "topic", tp.Name, tp)
		subs, err := b.Subscriptions(tp.Name)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, s := range subs {
			b.entity(&w, "subscription", entity.SubscriptionPath(tp.Name, s.Name), s)
		}
	}
	return w.String()
}

func (b broker) entity(w *strings.Builder, kind, path string, definition any) {
	b.t.Helper()
	text, err := json.MarshalIndent(definition, "  ", "  ")
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := b.Runtime(b.t.Context(), path)
	if err != nil {
		b.t.Fatal(err)
	}
	fmt.Fprintf(w, "\n%s %s\n  %s\n  created %s, updated %s\n", kind, path, text, stamp(r.CreatedAt), stamp(r.UpdatedAt))
	if p, err := b.Paused(path); err == nil && p != (switchboard.Pause{}) {
		fmt.Fprintf(w, "  paused: sending %v, receiving %v\n", p.Sending, p.Receiving)
	}
	for _, sub := range []string{"", entity.DeadLetter.String(), entity.TransferDeadLetter.String()} {
		b.messages(w, strings.TrimSuffix(path+"/"+strings.Trim(sub, "/"), "/"))
	}
	if kind == "topic" {
		return
	}
	for _, name := range b.sessions(path) {
		fmt.Fprintf(w, "  session %q\n", name)
	}
	o, err := b.Objectives(b.t.Context(), path)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range o.Classes {
		fmt.Fprintf(w, "  measured class %q: %d arrived, %d completed, %d dead letters\n", c.Name, c.Arrived.Total, c.Completed.Total, c.DeadLettered.Total)
	}
}

func (b broker) sessions(path string) []string {
	b.t.Helper()
	names, err := b.Sessions(b.t.Context(), path, time.Time{}, 0, 100)
	if err != nil && !errors.Is(err, switchboard.ErrNotAllowed) {
		b.t.Fatalf("sessions of %q: %v", path, err)
	}
	return names
}

// messages describes the messages of a queue in the order of their numbers.
func (b broker) messages(w *strings.Builder, addr string) {
	b.t.Helper()
	ds, err := b.Peek(b.t.Context(), addr, 1, 1000, nil)
	if errors.Is(err, switchboard.ErrNotAllowed) {
		return
	}
	if err != nil {
		b.t.Fatalf("peek at %q: %v", addr, err)
	}
	for _, d := range ds {
		fmt.Fprintf(w, "  %s %s\n", addr, b.message(&d))
	}
}

// message describes a message in one line.
func (b broker) message(d *switchboard.Delivery) string {
	b.t.Helper()
	m, err := d.Message()
	if err != nil {
		b.t.Fatalf("message %d cannot be read: %v", d.Seq, err)
	}
	var w strings.Builder
	fmt.Fprintf(&w, "#%d %s level %d", d.Seq, states[d.State], d.Level)
	for _, f := range []struct {
		name  string
		value any
		shown bool
	}{
		{"class", d.Class, d.Class != 0},
		{"key", d.Key, d.Key != ""},
		{"session", d.Session, d.InSession},
		{"origin", d.Origin, d.Origin != 0},
		{"failures", d.Failures, d.Failures != 0},
		{"hops", d.Hops, d.Hops != 0},
		{"enqueued", stamp(d.EnqueuedAt), true},
		{"age from", stamp(d.OrderTime), !d.OrderTime.IsZero()},
		{"expires", stamp(d.ExpiresAt), !d.ExpiresAt.IsZero()},
		{"scheduled for", stamp(d.NotBefore), !d.NotBefore.IsZero()},
		{"id", m.MessageIDString(), m.MessageIDString() != ""},
	} {
		if f.shown {
			fmt.Fprintf(&w, ", %s %v", f.name, f.value)
		}
	}
	for name, v := range m.Annotations() {
		fmt.Fprintf(&w, ", %s=%v", name, v)
	}
	for name, v := range m.Properties() {
		fmt.Fprintf(&w, ", %s=%v", name, v)
	}
	fmt.Fprintf(&w, ", %s", bodyOf(m))
	return w.String()
}

var states = map[queue.State]string{
	queue.Ready: "ready", queue.Locked: "locked", queue.Deferred: "deferred", queue.Scheduled: "scheduled",
}

// bodyOf returns how a body begins, and how long it is.
func bodyOf(m *message.Message) string {
	var body []byte
	for data := range m.Data() {
		body = append(body, data...)
	}
	text, padding, _ := strings.Cut(string(body), " ")
	if strings.Trim(padding, ".") != "" {
		return fmt.Sprintf("body %q", body) // damaged
	}
	return fmt.Sprintf("body %q and %d bytes", text, len(padding))
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000") }

// deliveries receives everything, in the order in which it is delivered, and
// lists which ids the duplicate detection still has. The store is empty then.
func (b broker) deliveries() string {
	b.t.Helper()
	var w strings.Builder
	fmt.Fprintf(&w, "\ndelivered\n")
	for _, q := range b.Queues() {
		if q.ForwardTo != "" {
			continue // its messages cannot be received
		}
		b.receiveAll(&w, q.Name, q.RequiresSession)
		if q.RequiresDuplicateDetection {
			for _, id := range []string{"dup-0", "dup-1", "dup-new"} {
				before := b.count(q.Name)
				b.send(q.Name, draft("again", 0, func(d *message.Draft) { d.MessageID = text(id) }))
				fmt.Fprintf(&w, "  %s: id %s is sent once more: %d stored\n", q.Name, id, b.count(q.Name)-before)
			}
		}
	}
	for _, tp := range b.Topics() {
		subs, err := b.Subscriptions(tp.Name)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, s := range subs {
			b.receiveAll(&w, entity.SubscriptionPath(tp.Name, s.Name), s.RequiresSession)
		}
	}
	return w.String()
}

func (b broker) count(path string) int64 {
	b.t.Helper()
	r, err := b.Runtime(b.t.Context(), path)
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Active
}

func (b broker) receiveAll(w *strings.Builder, path string, sessions bool) {
	b.t.Helper()
	if p, err := b.Paused(path); err == nil && p.Receiving {
		if err := b.Pause(b.t.Context(), path, switchboard.Pause{}); err != nil {
			b.t.Fatal(err)
		}
	}
	if !sessions {
		fmt.Fprintf(w, "  %s: %s\n", path, b.drain(path, switchboard.ReceiverOptions{Mode: switchboard.ReceiveAndDelete}))
		return
	}
	for b.nextSession(w, path) {
	}
	for _, name := range b.sessions(path) { // those that have a state only
		b.session(w, path, switchboard.ReceiverOptions{Session: &name})
	}
}

// nextSession takes the best free session, if there is one.
func (b broker) nextSession(w *strings.Builder, path string) bool {
	b.t.Helper()
	return b.session(w, path, switchboard.ReceiverOptions{NextSession: true})
}

// session shows the state of a session and receives its messages.
func (b broker) session(w *strings.Builder, path string, o switchboard.ReceiverOptions) bool {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
	defer cancel()
	k := newSink()
	o.Sink, o.Mode = k, switchboard.ReceiveAndDelete
	rec, err := b.OpenReceiver(ctx, path, o)
	if errors.Is(err, switchboard.ErrTimeout) {
		return false
	}
	if err != nil {
		b.t.Fatalf("session of %q: %v", path, err)
	}
	defer rec.Close()
	id, _ := rec.Session()
	data, err := b.SessionState(b.t.Context(), path, rec.SessionLock())
	if err != nil {
		b.t.Fatalf("state of session %q: %v", id, err)
	}
	rec.SetDeliveryLimit(1000)
	fmt.Fprintf(w, "  %s, session %q, state %q: %s\n", path, id, data, k.drain(rec))
	return true
}

// drain receives what there is.
func (b broker) drain(path string, o switchboard.ReceiverOptions) string {
	b.t.Helper()
	k := newSink()
	o.Sink = k
	rec, err := b.OpenReceiver(b.t.Context(), path, o)
	if err != nil {
		b.t.Fatalf("receive from %q: %v", path, err)
	}
	defer rec.Close()
	rec.SetDeliveryLimit(1000)
	return k.drain(rec)
}
