// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/entity"
)

// ownRule is a rule of an entity, and ownKey the same as a client has it.
func ownRule(name, key string, rights ...entity.Right) entity.AuthorizationRule {
	return entity.AuthorizationRule{KeyName: name, Rights: rights, PrimaryKey: key}
}

func ownKey(name, key string) access.Rule { return access.Rule{Name: name, PrimaryKey: key} }

// define creates a queue, or changes it if it is there.
func (b *bench) define(t *testing.T, q entity.Queue) {
	t.Helper()
	_, err := b.broker.UpdateQueue(t.Context(), q)
	if err != nil {
		_, err = b.broker.CreateQueue(t.Context(), q)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func hence(d time.Duration) time.Time { return time.Now().Add(d) }

// 11: the key of queue a is no key of queue a/b, whose name only begins like it,
// and is one of all that belongs to a.
func TestKeyOfAQueueEndsAtTheQueue(t *testing.T) {
	b := start(t)
	b.define(t, entity.Queue{Name: "a", AuthorizationRules: entity.AuthorizationRules{ownRule("own", "key of a", entity.Manage)}})
	b.define(t, entity.Queue{Name: "a/b"})
	p := b.anonymous(t, b.keeper)
	cbs := p.rpc("$cbs")
	own := ownKey("own", "key of a")
	for _, audience := range []string{"a", "a/$management", "A/$DeadLetterQueue"} {
		checkStatus(t, audience, cbs.put(own, "sb://ns.example/"+audience, hence(time.Hour)), 202)
	}
	for _, audience := range []string{"a/b", "a/b/$management", "a%2Fb", "A/B"} {
		checkStatus(t, audience, cbs.put(own, "sb://ns.example/"+audience, hence(time.Hour)), 401)
	}
	// One that is signed for a, and put for a/b.
	token := access.SignToken(own, "sb://ns.example/a", hence(time.Hour))
	reply := cbs.call("put-token", token, map[string]any{"type": tokenSAS, "name": "sb://ns.example/a/b"})
	checkStatus(t, "signed for a, put for a/b", reply, 401)

	s := p.session()
	_, err := s.NewSender(p.ctx(), "a/b", nil)
	wantCondition(t, "sender to a/b", err, "amqp:unauthorized-access")
	_, err = s.NewReceiver(p.ctx(), "a/b", nil)
	wantCondition(t, "receiver of a/b", err, "amqp:unauthorized-access")
	_, err = s.NewSender(p.ctx(), "a/b/$management", nil)
	wantCondition(t, "management of a/b", err, "amqp:unauthorized-access")
	p.send("a", &amqp.Message{Value: "x"})
	p.receiver("a/$DeadLetterQueue", peekLock())
	p.rpc("a/$management").manage("peek-message", map[string]any{"from-sequence-number": int64(0), "message-count": int32(1)}, 200)
}

// 10: links end when the key behind them is changed or removed, and a grant that
// was given before gives nothing any more.
func TestLinksEndWithTheirKey(t *testing.T) {
	changes := map[string]entity.AuthorizationRules{
		"key changed":   {ownRule("own", "another key", entity.Manage)},
		"rule removed":  {ownRule("other", "key of a", entity.Manage)},
		"right removed": {{KeyName: "own", Rights: []entity.Right{"Listen"}, PrimaryKey: "other", SecondaryKey: "other"}},
	}
	for name, rules := range changes {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			q := entity.Queue{Name: "a", AuthorizationRules: entity.AuthorizationRules{ownRule("own", "key of a", entity.Manage)}}
			b.define(t, q)
			p := b.anonymous(t, b.keeper)
			checkStatus(t, "put", p.rpc("$cbs").put(ownKey("own", "key of a"), "sb://ns.example/a", hence(time.Hour)), 202)
			r, s := p.receiver("a", peekLock()), p.sender("a")
			mgmt := p.rpc("a/$management")
			if err := s.Send(p.ctx(), &amqp.Message{Value: "x"}, nil); err != nil {
				t.Fatal(err)
			}

			q.AuthorizationRules = rules
			b.define(t, q)
			_, err := r.Receive(p.ctx(), nil)
			wantCondition(t, "receiver", err, "amqp:unauthorized-access")
			wantCondition(t, "sender", s.Send(p.ctx(), &amqp.Message{Value: "y"}, nil), "amqp:unauthorized-access")
			_, err = p.session().NewReceiver(p.ctx(), "a", nil)
			wantCondition(t, "new receiver", err, "amqp:unauthorized-access")
			mgmt.refused(t, "peek-message")
		})
	}
}

// refused checks that a request is not served for lack of rights: its link is gone,
// or the answer says so.
func (r *rpc) refused(t *testing.T, operation string) {
	t.Helper()
	m := &amqp.Message{
		Properties:            &amqp.MessageProperties{MessageID: "refused", ReplyTo: &r.replyTo},
		ApplicationProperties: map[string]any{"operation": "com.microsoft:" + operation},
		Value:                 map[string]any{"from-sequence-number": int64(0), "message-count": int32(1)},
	}
	if err := r.send.Send(r.p.ctx(), m, nil); err != nil {
		return
	}
	reply, err := r.receive.Receive(r.p.ctx(), nil)
	if err != nil {
		return
	}
	if status := reply.ApplicationProperties["status-code"]; status != int32(401) && status != int32(404) {
		t.Errorf("%s: status %v, want 401 or 404", operation, status)
	}
}

// 10: the rights of a rule that has fewer now are fewer, and those it kept work on.
func TestRightsOfAnOpenConnectionFollowTheRule(t *testing.T) {
	b := start(t)
	q := entity.Queue{Name: "a", AuthorizationRules: entity.AuthorizationRules{ownRule("own", "key of a", entity.Send, entity.Listen)}}
	b.define(t, q)
	p := b.anonymous(t, b.keeper)
	checkStatus(t, "put", p.rpc("$cbs").put(ownKey("own", "key of a"), "sb://ns.example/a", hence(time.Hour)), 202)
	r, s := p.receiver("a", peekLock()), p.sender("a")
	q.AuthorizationRules = entity.AuthorizationRules{ownRule("own", "key of a", entity.Send)}
	b.define(t, q)
	_, err := r.Receive(p.ctx(), nil)
	wantCondition(t, "receiver", err, "amqp:unauthorized-access")
	if err := s.Send(p.ctx(), &amqp.Message{Value: "x"}, nil); err != nil {
		t.Errorf("sender, whose right stayed: %v", err)
	}
}

// 10: so do those of a namespace, for tokens and for a login; who is left with
// nothing is cut off.
func TestLinksEndWithTheirKeyOfTheNamespace(t *testing.T) {
	b := start(t)
	p := b.anonymous(t, b.keeper)
	checkStatus(t, "put", p.rpc("$cbs").put(listenRule, "sb://ns.example/q", hence(time.Hour)), 202)
	r := p.receiver("q", peekLock())
	plain := b.login(t, listenRule)
	plainReceiver := plain.receiver("q", peekLock())
	other := b.login(t, sendRule).sender("q")

	b.keeper.Set(access.Rules{rootRule, sendRule})
	b.service.Review()
	for _, r := range []*amqp.Receiver{r, plainReceiver} {
		_, err := r.Receive(p.ctx(), nil)
		if err == nil {
			t.Error("a receiver outlived its key")
		}
	}
	select {
	case <-p.ctx().Done():
		t.Error("the connection is still open")
	case err := <-plain.served:
		if err == nil {
			t.Error("a connection whose login is void ended without a reason")
		}
	}
	if err := other.Send(p.ctx(), &amqp.Message{Value: "x"}, nil); err != nil {
		t.Errorf("a link of another key: %v", err)
	}
}

// 10: what was granted for a queue is not granted for another that has its name
// later; and neither do its links lead there.
func TestGrantsAreOfOneQueueAndNotOfItsName(t *testing.T) {
	for name, rule := range map[string]access.Rule{"key of the queue": ownKey("own", "key of a"), "key of the namespace": rootRule} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			q := entity.Queue{Name: "a", AuthorizationRules: entity.AuthorizationRules{ownRule("own", "key of a", entity.Manage)}}
			b.define(t, q)
			p := b.anonymous(t, b.keeper)
			cbs := p.rpc("$cbs")
			checkStatus(t, "put", cbs.put(rule, "sb://ns.example/a", hence(time.Hour)), 202)
			r, s, mgmt := p.receiver("a", peekLock()), p.sender("a"), p.rpc("a/$management")
			if err := b.broker.DeleteQueue(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			b.define(t, q) // with the same rule and key
			if err := s.Send(p.ctx(), &amqp.Message{Value: "x"}, nil); err == nil {
				t.Error("the old sender reached the new queue")
			}
			if _, err := r.Receive(p.ctx(), nil); err == nil {
				t.Error("the old receiver is still there")
			}
			mgmt.refused(t, "peek-message")
			_, err := p.session().NewSender(p.ctx(), "a", nil)
			wantCondition(t, "a new sender with the old grant", err, "amqp:unauthorized-access")
			checkStatus(t, "put anew", cbs.put(rule, "sb://ns.example/a", hence(time.Hour)), 202)
			p.send("a", &amqp.Message{Value: "x"})
		})
	}
}

// A management link that stays open does not lead to a new queue of the old name,
// whatever else its user may do.
func TestManagementLinksAreOfOneQueue(t *testing.T) {
	b := start(t)
	b.define(t, entity.Queue{Name: "a"})
	mgmt := b.login(t, rootRule).rpc("a/$management")
	if err := b.broker.DeleteQueue(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	b.define(t, entity.Queue{Name: "a"})
	mgmt.refused(t, "peek-message")
}

// 15: only the receiver that holds a session speaks for it.
func TestSessionsAreFenced(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.sendInSession("a", "one")
	r := p.receiver("sessions", inSession("a", 0))
	ours, theirs := p.rpc("sessions/$management"), b.login(t, rootRule).rpc("sessions/$management")
	state := map[string]any{"session-id": "a", "session-state": []byte("mine")}
	id := map[string]any{"session-id": "a"}
	for _, op := range []string{"renew-session-lock", "get-session-state", "set-session-state"} {
		lost := theirs.call("com.microsoft:"+op, state, nil)
		checkStatus(t, op+" of another connection", lost, 410)
		if got := lost.ApplicationProperties["errorCondition"]; got != amqp.Symbol(names.SessionLockLost) && got != names.SessionLockLost {
			t.Errorf("%s: condition %v, want %s", op, got, names.SessionLockLost)
		}
		ours.manage(op, state, 200)
		named := map[string]any{"associated-link-name": r.LinkName()}
		checkStatus(t, op+" of the link", ours.call("com.microsoft:"+op, state, named), 200)
		named["associated-link-name"] = "a link that has lost it"
		checkStatus(t, op+" of another link", ours.call("com.microsoft:"+op, state, named), 410)
	}

	// Lock tokens can be guessed: on an entity with sessions they are no proof.
	m := p.next(r)
	token := map[string]any{"lock-tokens": []amqp.UUID{lockTokenOf(t, m)}, "disposition-status": "completed"}
	theirs.manage("renew-lock", token, 410)
	theirs.manage("update-disposition", token, 410)
	ours.manage("renew-lock", token, 200)
	if err := r.ModifyMessage(p.ctx(), m, &amqp.ModifyMessageOptions{UndeliverableHere: true}); err != nil { // defers it
		t.Fatal(err)
	}
	deferred := map[string]any{"session-id": "a", "sequence-numbers": []int64{m.Annotations["x-opt-sequence-number"].(int64)}, "receiver-settle-mode": uint32(1)}
	theirs.manage("receive-by-sequence-number", deferred, 410)
	ours.manage("receive-by-sequence-number", deferred, 200)

	if err := r.Close(p.ctx()); err != nil {
		t.Fatal(err)
	}
	ours.manage("set-session-state", state, 410)
	ours.manage("get-session-state", id, 410)
}

// lockTokenOf returns the lock token of a message as a request names it.
func lockTokenOf(t *testing.T, m *amqp.Message) amqp.UUID {
	t.Helper()
	token, ok := m.DeliveryAnnotations["x-opt-lock-token"].(amqp.UUID)
	if !ok {
		t.Fatalf("no lock token among %v", m.DeliveryAnnotations)
	}
	return token
}

// 19: a receiver over several queues needs the right to each, all the time.
func TestReceiverOfASetEndsWithAnyOfItsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		for _, name := range []string{"one", "two"} {
			b.define(t, entity.Queue{Name: name})
		}
		p := b.anonymous(t, b.keeper)
		cbs := p.rpc("$cbs")
		checkStatus(t, "put", cbs.put(listenRule, "sb://ns.example/one", hence(time.Hour)), 202)
		checkStatus(t, "put", cbs.put(listenRule, "sb://ns.example/two", hence(time.Minute)), 202)
		o := peekLock()
		o.Properties = map[string]any{names.Sources: []any{"one", "two"}}
		r := p.receiver("one", o)
		time.Sleep(2 * time.Minute)
		b.login(t, rootRule).send("two", &amqp.Message{Value: "not for you"})
		if err := r.IssueCredit(1); err != nil {
			return // the link is gone, as it should
		}
		_, err := r.Receive(p.ctx(), nil)
		e := wantCondition(t, "after the second token ended", err, "amqp:unauthorized-access")
		if !strings.Contains(e.Description, "/two'") {
			t.Errorf("text %q does not say which queue it is about", e.Description)
		}
	})
}

// A message cannot be relayed to a node that takes requests.
func TestRelayToManagementIsRefused(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	s, err := p.session().NewSender(p.ctx(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"q/$management", "Q/$Management/", "amqps://h/q/$management", "$management", "$cbs"} {
		err := s.Send(p.ctx(), &amqp.Message{Properties: &amqp.MessageProperties{To: &to}, Value: "x"}, nil)
		if err == nil {
			t.Errorf("a message to %s was accepted", to)
		}
	}
	to := "q"
	if err := s.Send(p.ctx(), &amqp.Message{Properties: &amqp.MessageProperties{To: &to}, Value: "x"}, nil); err != nil {
		t.Errorf("a message to q: %v", err)
	}
	if rt, err := b.broker.Runtime(t.Context(), "q"); err != nil || rt.Active != 1 {
		t.Errorf("q holds %d messages (%v), want the one that was sent to it", rt.Active, err)
	}
}

// A client that asks for many names that are not there makes us remember none.
func TestNamesThatAreNotThereAreNotWatched(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	s := p.session()
	const minWatched = 64 // of package azure
	for i := range 4 * minWatched {
		_, err := s.NewReceiver(p.ctx(), fmt.Sprint("none-", i), nil)
		wantCondition(t, "attach", err, "amqp:not-found")
	}
	if n := b.service.Held().Watched; n > minWatched {
		t.Errorf("%d names are watched, want at most %d", n, minWatched)
	}
}
