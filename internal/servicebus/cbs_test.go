// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/access"
)

func TestPutToken(t *testing.T) {
	b := start(t)
	cbs := b.anonymous(t, b.keeper).rpc("$cbs")
	hour := time.Now().Add(time.Hour)
	wrong := rootRule
	wrong.PrimaryKey = "wrong"
	tests := []struct {
		name     string
		rule     access.Rule
		audience string
		expires  time.Time
		status   int32
		text     string
	}{
		{"entity", rootRule, "amqp://ns.example:5671/q", hour, 202, "Accepted"},
		{"its management", rootRule, "sb://ns.example/Q/$management", hour, 202, "Accepted"},
		{"subscription", rootRule, "sb://ns.example/t/Subscriptions/s", hour, 202, "Accepted"},
		{"dead letters", rootRule, "sb://ns.example/q/$deadletterqueue", hour, 202, "Accepted"},
		{"rights are checked later", sendRule, "sb://ns.example/q", hour, 202, "Accepted"},
		{"no such entity", rootRule, "sb://ns.example/none", hour, 404, "The messaging entity 'sb://ns.example/none' could not be found."},
		{"its management", rootRule, "sb://ns.example/none/$management", hour, 404, "The messaging entity 'sb://ns.example/none' could not be found."},
		{"wrong key", wrong, "sb://ns.example/q", hour, 401, "InvalidSignature: The token has an invalid signature."},
		{"wrong key for nothing", wrong, "sb://ns.example/none", hour, 401, "InvalidSignature: The token has an invalid signature."},
		{"expired", rootRule, "sb://ns.example/q", time.Unix(1700000000, 0), 401, "ExpiredToken: The token is expired. Expiration time:'2023-11-14T22:13:20.000Z'."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reply := cbs.put(tt.rule, tt.audience, tt.expires)
			checkStatus(t, tt.name, reply, tt.status)
			for _, key := range []string{"status-description", "statusDescription"} {
				if got := reply.ApplicationProperties[key]; got != tt.text {
					t.Errorf("%s is %q, want %q", key, got, tt.text)
				}
			}
			if _, failed := reply.ApplicationProperties["errorCondition"]; failed != (tt.status != 202) {
				t.Errorf("errorCondition present: %v", failed)
			}
		})
	}

	t.Run("token of another audience", func(t *testing.T) {
		reply := cbs.call("put-token", access.SignToken(rootRule, "sb://ns.example/q", hour),
			map[string]any{"type": tokenSAS, "name": "sb://ns.example/sessions"})
		checkStatus(t, "put-token", reply, 401)
	})
	t.Run("bearer token", func(t *testing.T) {
		reply := cbs.call("put-token", "a.b.c", map[string]any{"type": tokenJWT, "name": "sb://ns.example/q"})
		checkStatus(t, "put-token", reply, 401)
	})
	// azure-eventhub 5.11 for Python calls every token a JWT.
	for key, status := range map[string]int32{rootRule.PrimaryKey: 202, "wrong": 401} {
		t.Run("signature that is called a bearer token", func(t *testing.T) {
			rule := rootRule
			rule.PrimaryKey = key
			reply := cbs.call("put-token", access.SignToken(rule, "sb://ns.example/q", hour),
				map[string]any{"type": tokenJWT, "name": "sb://ns.example/q"})
			checkStatus(t, "put-token", reply, status)
		})
	}
	t.Run("other operation", func(t *testing.T) {
		checkStatus(t, "delete-token", cbs.call("delete-token", "x", nil), 501)
	})
}

func TestOnePairOfTokenLinks(t *testing.T) {
	b := start(t)
	p := b.anonymous(t, b.keeper)
	first := p.rpc("$cbs")
	s := p.session()
	_, err := s.NewSender(p.ctx(), "$cbs", nil)
	wantCondition(t, "second sender", err, "amqp:not-allowed")
	_, err = s.NewReceiver(p.ctx(), "$cbs", nil)
	wantCondition(t, "second receiver", err, "amqp:not-allowed")

	if err := first.send.Close(p.ctx()); err != nil {
		t.Fatal(err)
	}
	if err := first.receive.Close(p.ctx()); err != nil {
		t.Fatal(err)
	}
	reply := p.rpc("$cbs").put(rootRule, "sb://ns.example/q", time.Now().Add(time.Hour))
	checkStatus(t, "after the first pair was closed", reply, 202)
}

func TestTokenGivesItsRightsWhereItWasPut(t *testing.T) {
	b := start(t)
	p := b.anonymous(t, b.keeper)
	s := p.session()
	_, err := s.NewSender(p.ctx(), "q", nil)
	wantCondition(t, "sender without a token", err, "amqp:unauthorized-access")

	checkStatus(t, "put", p.rpc("$cbs").put(sendRule, "sb://ns.example/q", time.Now().Add(time.Hour)), 202)
	if _, err = s.NewSender(p.ctx(), "Q", nil); err != nil {
		t.Fatalf("sender with a token: %v", err)
	}
	_, err = s.NewReceiver(p.ctx(), "q", nil)
	e := wantCondition(t, "receiver with a token to send", err, "amqp:unauthorized-access")
	if want := "Unauthorized access. 'Listen' claim(s) are required to perform this operation."; !strings.HasPrefix(e.Description, want) {
		t.Errorf("text %q, want %q first", e.Description, want)
	}
	_, err = s.NewSender(p.ctx(), "sessions", nil)
	wantCondition(t, "sender elsewhere", err, "amqp:unauthorized-access")
}

func TestDevelopmentLetsPlainClientsIn(t *testing.T) {
	b := start(t)
	p := b.anonymous(t, access.ForDevelopment(b.keeper))
	p.send("q", &amqp.Message{Value: "hello"})

	// From the first token on, tokens decide.
	cbs := p.rpc("$cbs")
	checkStatus(t, "put", cbs.put(listenRule, "sb://ns.example/q", time.Now().Add(time.Hour)), 202)
	_, err := p.session().NewSender(p.ctx(), "q", nil)
	wantCondition(t, "sender with a token to listen", err, "amqp:unauthorized-access")
}

func TestWrongPassword(t *testing.T) {
	b := start(t)
	_, err := b.dial(t, b.keeper, &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(rootRule.Name, "wrong")})
	if err == nil {
		t.Fatal("a wrong key got in")
	}
}

func TestLinksEndWithTheirToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		p := b.anonymous(t, b.keeper)
		cbs := p.rpc("$cbs")
		put := func(life time.Duration) {
			checkStatus(t, "put", cbs.put(rootRule, "sb://ns.example/q", time.Now().Add(life)), 202)
		}
		put(time.Minute)
		r := p.receiver("q", peekLock())
		time.Sleep(30 * time.Second)
		put(time.Minute) // in place of the first
		time.Sleep(45 * time.Second)
		p.send("q", &amqp.Message{Value: "still there"})
		if err := r.AcceptMessage(p.ctx(), p.next(r)); err != nil {
			t.Fatalf("after the token was renewed: %v", err)
		}
		time.Sleep(30 * time.Second)
		_, err := r.Receive(p.ctx(), nil)
		wantCondition(t, "after the token ended", err, "amqp:unauthorized-access")
	})
}

func TestUnauthenticatedPeerIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		p := b.anonymous(t, b.keeper)
		time.Sleep(authTimeout - time.Second)
		select {
		case err := <-p.served:
			t.Fatalf("closed early: %v", err)
		default:
		}
		time.Sleep(2 * time.Second)
		if err := <-p.served; err == nil {
			t.Fatal("the connection ended without a reason")
		}
	})
}

// overheard is an authority that wants to know of refusals.
type overheard struct {
	access.Authority
	refused chan string
}

func (o overheard) Refused(rule string, _ error) { o.refused <- rule }

// A token that is good, but not for what it was put for, is refused where the authority
// does not see it. It is told, for the log.
func TestRefusalsAreReported(t *testing.T) {
	b := start(t)
	a := overheard{b.keeper, make(chan string, 10)}
	cbs := b.anonymous(t, a).rpc("$cbs")
	reply := cbs.call("put-token", access.SignToken(rootRule, "sb://ns.example/q", time.Now().Add(time.Hour)),
		map[string]any{"type": tokenSAS, "name": "sb://ns.example/sessions"})
	checkStatus(t, "put-token", reply, 401)
	select {
	case rule := <-a.refused:
		if rule != rootRule.Name {
			t.Errorf("told of %q, want %q", rule, rootRule.Name)
		}
	default:
		t.Error("nobody was told")
	}
}

// A client of Event Hubs always has a selector. What is not there is said to be so, before
// anything about selectors.
func TestSelectorOnWhatIsNotThere(t *testing.T) {
	b := start(t)
	s := b.login(t, rootRule).session()
	selector := &amqp.ReceiverOptions{Filters: []amqp.LinkFilter{amqp.NewSelectorFilter("amqp.annotation.x-opt-offset > '-1'")}}
	for node, condition := range map[string]string{
		"other":                               "amqp:not-found",
		"other/ConsumerGroups/g/Partitions/0": "amqp:not-found",
		"q":                                   "amqp:not-implemented",
	} {
		_, err := s.NewReceiver(t.Context(), node, selector)
		wantCondition(t, node, err, condition)
	}
}
