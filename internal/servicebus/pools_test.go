// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"slices"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/access/accesstest"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/entity"
)

// announced is a report of a pool with four slots.
func announced(name string, more ...any) map[string]any {
	body := map[string]any{"name": name, "instance": "1", "host": "h", "process": int32(7), "slots": int32(4)}
	for i := 0; i < len(more); i += 2 {
		body[more[i].(string)] = more[i+1]
	}
	return body
}

func (r *rpc) announce(body map[string]any, status int32) map[string]any {
	r.p.t.Helper()
	reply := r.call(names.AnnouncePool, body, nil)
	checkStatus(r.p.t, names.AnnouncePool, reply, status)
	fields, _ := reply.Value.(map[string]any)
	return fields
}

func TestPoolsAnnounceThemselvesAndGetOrders(t *testing.T) {
	b := start(t)
	p := b.login(t, listenRule)
	b.login(t, rootRule).send("q", &amqp.Message{Value: 1}, &amqp.Message{Value: 2})
	mgmt := p.rpc("q/$management")
	orders := mgmt.announce(announced("low", "busy", int64(1)), 200)
	want := map[string]any{
		"paused": false, "slots": int32(0), "revision": int64(0), "known": true, "demand": int32(1),
		"waiting": int64(2), "spare": true, "instances": int32(1),
	}
	for key, value := range want {
		if orders[key] != value {
			t.Errorf("%s is %T %[2]v, want %v", key, orders[key], value)
		}
	}
	if _, ok := orders["oldest"].(int64); !ok {
		t.Errorf("oldest is %T", orders["oldest"])
	}
	if _, err := b.broker.PausePools(t.Context(), "low", "", true); err != nil {
		t.Fatal(err)
	}
	if _, err := b.broker.ResizePools(t.Context(), "low", "q", 9); err != nil {
		t.Fatal(err)
	}
	orders = mgmt.announce(announced("low"), 200)
	if orders["paused"] != true || orders["slots"] != int32(9) || orders["revision"].(int64) < time.Now().Add(-time.Minute).UnixMilli() {
		t.Errorf("orders %v, want a pause and 9 slots", orders)
	}
	mgmt.announce(announced("low", "leaving", true), 200)
	ps := b.broker.Pools()
	if len(ps) != 1 || len(ps[0].Instances) != 0 || !ps[0].Paused {
		t.Errorf("pools %+v, want one without processes", ps)
	}
}

func TestOddAnnouncementsAreRefused(t *testing.T) {
	b := start(t)
	mgmt := b.login(t, listenRule).rpc("q/$management")
	many := make([]any, 300)
	for i := range many {
		many[i] = "q"
	}
	for what, body := range map[string]map[string]any{
		"no name":           {"instance": "1"},
		"a number":          announced("low", "name", int32(1)),
		"control":           announced("a\x1bb"),
		"negative":          announced("low", "slots", int32(-1)),
		"text for a number": announced("low", "busy", "many"),
		"text for sources":  announced("low", "sources", "q"),
		"numbers":           announced("low", "sources", []any{int32(1)}),
		"no address":        announced("low", "sources", []any{"q", "a//b"}),
		"the namespace":     announced("low", "sources", []any{"q", ""}),
		"many sources":      announced("low", "sources", many),
		"ordered too many":  announced("low", "ordered-slots", int64(1)<<40),
	} {
		if reply := mgmt.call(names.AnnouncePool, body, nil); reply.ApplicationProperties["statusCode"] != int32(400) {
			t.Errorf("%s: %v, want 400", what, reply.ApplicationProperties)
		}
	}
	namespace := b.login(t, listenRule).rpc("$management")
	if reply := namespace.call(names.AnnouncePool, announced("low"), nil); reply.ApplicationProperties["statusCode"] != int32(400) {
		t.Errorf("at the namespace: %v, want 400", reply.ApplicationProperties)
	}
	if ps := b.broker.Pools(); len(ps) != 0 {
		t.Errorf("listed: %+v", ps)
	}
}

// What a sender may not listen to is not shown, and its demand not told.
func TestPoolsShowOnlySourcesThatTheyMayListenTo(t *testing.T) {
	b := start(t)
	for _, name := range []string{"mine", "theirs"} {
		b.define(t, entity.Queue{Name: name, AuthorizationRules: accesstest.Rules(name)})
	}
	b.login(t, rootRule).send("theirs", &amqp.Message{Value: 1})
	p := b.anonymous(t, b.keeper)
	cbs := p.rpc("$cbs")
	checkStatus(t, "token", cbs.put(accesstest.Key("mine", access.Listen), "mine", time.Now().Add(time.Hour)), 202)
	mgmt := p.rpc("mine/$management")
	orders := mgmt.announce(announced("low", "sources", []any{"mine", "theirs", "MINE", "none"}), 200)
	if orders["waiting"] != int64(0) || orders["demand"] != int32(0) {
		t.Errorf("orders %v tell of a queue that the pool may not listen to", orders)
	}
	if ps := b.broker.Pools(); len(ps) != 1 || ps[0].Source != "mine" || !slices.Equal(ps[0].Sources, []string{"mine"}) {
		t.Errorf("pools %+v, want only the source mine", ps)
	}
}

// A queue that does not exist yet makes the demand unknown, and nothing else.
func TestPoolsMayWaitForASource(t *testing.T) {
	b := start(t)
	mgmt := b.login(t, listenRule).rpc("q/$management")
	orders := mgmt.announce(announced("low", "sources", []any{"q", "later"}), 200)
	if orders["known"] != false {
		t.Errorf("orders %v, want an unknown demand", orders)
	}
	b.login(t, rootRule).send("q", &amqp.Message{Value: 1})
	dead := b.login(t, listenRule).rpc("q/$deadletterqueue/$management")
	if orders := dead.announce(announced("dead"), 200); orders["known"] != false || orders["demand"] != int32(0) {
		t.Errorf("orders %v of dead letters tell of the queue", orders)
	}
}
