// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"maps"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/entity"
)

// A token that is put in place of another takes away what only the other gave: a link
// that stood on that would otherwise outlive the first token for as long as the second
// is renewed.
func TestTokenWithFewerRightsEndsLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		p := b.anonymous(t, b.keeper)
		cbs := p.rpc("$cbs")
		const audience = "sb://ns.example/q"
		checkStatus(t, "put", cbs.put(rootRule, audience, hence(time.Minute)), 202)
		s, r := p.sender("q"), p.receiver("q", peekLock())
		for range 3 {
			checkStatus(t, "put a lesser one", cbs.put(listenRule, audience, hence(time.Minute)), 202)
			time.Sleep(30 * time.Second)
		}
		wantCondition(t, "sender whose token has ended", s.Send(p.ctx(), &amqp.Message{Value: "x"}, nil), "amqp:unauthorized-access")
		if rt, err := b.broker.Runtime(t.Context(), "q"); err != nil || rt.Active != 0 {
			t.Errorf("q holds %d messages (%v), want none", rt.Active, err)
		}
		b.login(t, sendRule).send("q", &amqp.Message{Value: "y"})
		p.next(r) // its right is there all the time
	})
}

// So does a token in place of one whose rule has got more rights since it was put.
func TestTokenWithFewerRightsThanTheRuleHasNowEndsLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		p := b.anonymous(t, b.keeper)
		cbs := p.rpc("$cbs")
		const audience = "sb://ns.example/q"
		grown, other := listenRule, listenRule
		other.Name, other.PrimaryKey = "other", "other key"
		checkStatus(t, "put", cbs.put(grown, audience, hence(time.Hour)), 202)
		grown.Rights = access.Send | access.Listen
		b.keeper.Set(access.Rules{grown, other})
		b.service.Review()
		s := p.sender("q")
		checkStatus(t, "put a lesser one", cbs.put(other, audience, hence(time.Hour)), 202)
		synctest.Wait()
		wantCondition(t, "sender whose token was replaced", s.Send(p.ctx(), &amqp.Message{Value: "x"}, nil), "amqp:unauthorized-access")
	})
}

// A peer that was accepted without a token has what its tokens give once it puts one;
// its links as well.
func TestFirstTokenEndsLinksWithoutOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		p := b.anonymous(t, access.ForDevelopment(b.keeper))
		s, r := p.sender("q"), p.receiver("q", peekLock())
		checkStatus(t, "put", p.rpc("$cbs").put(listenRule, "sb://ns.example/q", hence(time.Hour)), 202)
		synctest.Wait()
		wantCondition(t, "sender with a token to listen", s.Send(p.ctx(), &amqp.Message{Value: "x"}, nil), "amqp:unauthorized-access")
		b.login(t, sendRule).send("q", &amqp.Message{Value: "y"})
		p.next(r)
	})
}

// A connection that logged in with a certificate ends with it, as one would be refused
// that comes then.
func TestConnectionEndsWithItsCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		ours, theirs := net.Pipe()
		served := make(chan error, 1)
		go func() { // ends with the pipe
			served <- b.service.Serve(t.Context(), endpoint.NewConn(ours, endpoint.Config{}),
				azure.Peer{Authority: b.keeper, Certificate: sendRule.Name, CertificateEnds: hence(time.Hour)})
		}()
		conn, err := amqp.NewConn(t.Context(), theirs, &amqp.ConnOptions{SASLType: amqp.SASLTypeExternal("")})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		p := &peerOf{conn, t, served}
		s := p.sender("q")
		time.Sleep(59 * time.Minute)
		if err := s.Send(p.ctx(), &amqp.Message{Value: "x"}, nil); err != nil {
			t.Fatalf("before the end: %v", err)
		}
		time.Sleep(2 * time.Minute)
		if err := s.Send(p.ctx(), &amqp.Message{Value: "y"}, nil); err == nil {
			t.Error("a message was accepted after the certificate had ended")
		}
	})
}

// ask sends a request and does not wait for the reply.
func (r *rpc) ask(operation string, body any, properties map[string]any) {
	r.p.t.Helper()
	m := &amqp.Message{
		Properties:            &amqp.MessageProperties{MessageID: "request 1", ReplyTo: &r.replyTo},
		ApplicationProperties: map[string]any{"operation": operation},
		Value:                 body,
	}
	maps.Copy(m.ApplicationProperties, properties)
	go func() { _ = r.send.Send(r.p.ctx(), m, nil) }() // it is settled with the reply, or the link ends
}

// A request that waits has lost its turn when its right ends, or when the queue is
// another one.
func TestRequestThatWaitsNeedsItsRightStill(t *testing.T) {
	own := ownRule("own", "key of a", entity.Manage)
	for name, change := range map[string]func(t *testing.T, b *bench){
		"token ends":  nil,
		"key changes": func(t *testing.T, b *bench) { b.define(t, entity.Queue{Name: "a"}) },
		"queue is anew": func(t *testing.T, b *bench) {
			if err := b.broker.DeleteQueue(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			b.define(t, entity.Queue{Name: "a", AuthorizationRules: entity.AuthorizationRules{own}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t)
				b.define(t, entity.Queue{Name: "a", AuthorizationRules: entity.AuthorizationRules{own}})
				p := b.anonymous(t, b.keeper)
				checkStatus(t, "put", p.rpc("$cbs").put(ownKey("own", "key of a"), "sb://ns.example/a", hence(10*time.Second)), 202)
				mgmt := p.rpc("a/$management")
				p.sender("a") // has the connection use the personality
				account := b.opened.last().Unsynced()
				full := account.Limit() - account.Used()
				account.Charge(full) // the disk is slow
				scheduled := (&amqp.Message{
					Annotations: amqp.Annotations{"x-opt-scheduled-enqueue-time": hence(time.Hour)},
					Data:        [][]byte{[]byte("late")},
				})
				raw, err := scheduled.MarshalBinary()
				if err != nil {
					t.Fatal(err)
				}
				mgmt.ask("com.microsoft:schedule-message", map[string]any{"messages": []any{map[string]any{"message": raw}}}, nil)
				synctest.Wait()
				if change != nil {
					change(t, b)
				} else {
					time.Sleep(20 * time.Second)
				}
				synctest.Wait()
				account.Release(full)
				synctest.Wait()
				if rt, err := b.broker.Runtime(t.Context(), "a"); err != nil || rt.Scheduled+rt.Active != 0 {
					t.Errorf("a holds %d messages (%v), want none", rt.Scheduled+rt.Active, err)
				}
			})
		})
	}
}

// Who has no right anywhere cannot send to a temporary node, be it by way of an answer
// of $cbs.
func TestOtherConnectionCannotReachATemporaryNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		p := b.login(t, access.Rule{Name: listenRule.Name, PrimaryKey: listenRule.PrimaryKey})
		r, err := p.session().NewReceiver(p.ctx(), "", &amqp.ReceiverOptions{DynamicAddress: true, Credit: 10})
		if err != nil {
			t.Fatal(err)
		}
		outsider := b.anonymous(t, b.keeper).rpc("$cbs")
		outsider.replyTo = r.Address()
		outsider.ask("anything that is written into the answer", "x", nil)
		synctest.Wait()
		if m := r.Prefetched(); m != nil {
			t.Errorf("the reader got %v from an unauthenticated peer", m.ApplicationProperties)
		}
	})
}
