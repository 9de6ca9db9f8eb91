// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/access/accesstest"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure/condition"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/script"
	"github.com/triagemq/triagemq/internal/servicebus/management"
)

// The rights matrix of AMQP: every operation with every key and every kind of token.
// What is allowed is worked out from the right that an operation needs, tried, and
// printed in the guide.

// matrixTargets are the entities that operations are tried at. The other queue is
// one whose name theirs begin with.
var matrixTargets = []string{"orders/eu", "orders/us", "orders/tours", "news"}

// credential is a column: who tries.
type credential struct{ accesstest.Credential }

// base is where the resources of tokens are.
const base = "sb://ns.example/"

// trial is a client and the session in which it tries: unauthenticated clients have few.
type trial struct {
	*peerOf
	s *amqp.Session
}

// action is a row: what is tried.
type action struct {
	name  string
	needs access.Rights // any is enough if it is zero
	// anywhere says that a right to any entity is enough.
	anywhere bool
	open     bool // to everybody
	try      func(p *trial) error
}

func actions() []action {
	var n int
	attach := func(addr string, o *amqp.ReceiverOptions) func(*trial) error {
		return func(p *trial) error {
			r, err := p.s.NewReceiver(p.ctx(), addr, o)
			if err == nil {
				err = r.Close(p.ctx())
			}
			return err
		}
	}
	send := func(addr string) func(*trial) error {
		return func(p *trial) error {
			s, err := p.s.NewSender(p.ctx(), addr, nil)
			if err == nil {
				err = s.Send(p.ctx(), &amqp.Message{Value: "x"}, nil)
			}
			return err
		}
	}
	set := peekLock()
	set.Properties = map[string]any{names.Sources: []any{"orders/eu", "orders/us"}}
	forGood := peekLock()
	forGood.RequestedSenderSettleMode = amqp.SenderSettleModeSettled.Ptr()
	as := []action{
		{name: "put a token: attach to `$cbs`", open: true, try: func(p *trial) error {
			l, err := p.s.NewSender(p.ctx(), "$cbs", nil)
			if err == nil {
				err = l.Close(p.ctx())
			}
			return err
		}},
		{name: "send to a queue", needs: access.Send, try: send("orders/eu")},
		{name: "send to a topic", needs: access.Send, try: send("news")},
		{name: "send without an address, to a queue", needs: access.Send, try: func(p *trial) error {
			s, err := p.s.NewSender(p.ctx(), "", nil)
			if err == nil {
				to := "orders/eu"
				err = s.Send(p.ctx(), &amqp.Message{Properties: &amqp.MessageProperties{To: &to}, Value: "x"}, nil)
			}
			return err
		}},
		{name: "receive from a queue", needs: access.Listen, try: attach("orders/eu", peekLock())},
		{name: "receive and delete from a queue", needs: access.Listen, try: attach("orders/eu", forGood)},
		{name: "receive dead letters", needs: access.Listen, try: attach("orders/eu/$deadletterqueue", peekLock())},
		{name: "receive from a subscription", needs: access.Listen, try: attach("news/subscriptions/all", peekLock())},
		{name: "receive from a session", needs: access.Listen, try: func(p *trial) error {
			n++
			return attach("orders/tours", inSession(fmt.Sprint("session ", n), 0))(p)
		}},
		{name: "receive from several queues", needs: access.Listen, try: attach("orders/eu", set)},
		{name: "be asked for messages back", needs: access.Listen, try: func(p *trial) error {
			o := peekLock()
			o.Name, o.Properties = "main", map[string]any{names.Recall: true}
			r, err := p.s.NewReceiver(p.ctx(), "orders/eu", o)
			if err != nil {
				return err
			}
			defer r.Close(p.ctx())
			return attach("orders/eu/$recall", &amqp.ReceiverOptions{Properties: map[string]any{names.Link: "main"}})(p)
		}},
		{name: "make a temporary node", anywhere: true, try: attach("", &amqp.ReceiverOptions{DynamicAddress: true})},
		{name: "attach to `$management`", try: attach("orders/eu/$management", nil)},
	}
	for _, name := range operationNames {
		at, body := "orders/eu", map[string]any{"x": int32(1)}
		switch {
		case strings.Contains(name, "rule"):
			at = "news/subscriptions/all"
		case strings.Contains(name, "session"):
			at = "orders/tours"
		}
		as = append(as, action{name: "`" + name + "`", needs: operationNeeds[name], try: func(p *trial) error { return p.request(at+"/$management", name, body) }})
	}
	return as
}

// operationNames are the operations of $management in the order of the page, and
// operationNeeds the rights that the service documents for them.
var operationNames = []string{
	"schedule-message", "cancel-scheduled-message",
	"peek-message", "receive-by-sequence-number", "renew-lock", "update-disposition", "batch-delete-messages",
	"renew-session-lock", "get-session-state", "set-session-state", "get-message-sessions",
	"add-rule", "remove-rule", "enumerate-rules", names.AnnouncePool, names.SaveState,
}

var operationNeeds = map[string]access.Rights{
	"schedule-message": access.Send, "cancel-scheduled-message": access.Send,
	"peek-message": access.Listen, "receive-by-sequence-number": access.Listen, "renew-lock": access.Listen,
	"update-disposition": access.Listen, "batch-delete-messages": access.Listen,
	"renew-session-lock": access.Listen, "get-session-state": access.Listen, "set-session-state": access.Listen,
	"get-message-sessions": access.Listen,
	"add-rule":             access.Listen, "remove-rule": access.Listen, "enumerate-rules": access.Listen,
	names.AnnouncePool: access.Listen, names.SaveState: access.Listen,
}

// errStatus is an answer of $management that the peer may not have what it asks for.
var errStatus = errors.New("status 401")

// request sends a request to a $management node, whose arguments are wrong: a
// client with the right is told so.
func (p *trial) request(node, name string, body map[string]any) error {
	send, err := p.s.NewSender(p.ctx(), node, nil)
	if err != nil {
		return err
	}
	defer send.Close(p.ctx())
	replyTo := "replies"
	receive, err := p.s.NewReceiver(p.ctx(), node, &amqp.ReceiverOptions{TargetAddress: replyTo, Credit: 10})
	if err != nil {
		return err
	}
	defer receive.Close(p.ctx())
	if !strings.Contains(name, ":") {
		name = "com.microsoft:" + name
	}
	err = send.Send(p.ctx(), &amqp.Message{
		Properties:            &amqp.MessageProperties{MessageID: "1", ReplyTo: &replyTo},
		ApplicationProperties: map[string]any{"operation": name}, Value: body,
	}, nil)
	if err != nil {
		return err
	}
	m, err := receive.Receive(p.ctx(), nil)
	if err != nil {
		return err
	}
	if m.ApplicationProperties["status-code"] == int32(condition.StatusUnauthorized) {
		return errStatus
	}
	return nil
}

// matrixBench is a broker with everything that the rows are about.
func matrixBench(t *testing.T) *bench {
	b := start(t)
	for _, name := range append(matrixTargets, accesstest.Other, "elsewhere") {
		if name != "news" {
			b.define(t, entity.Queue{Name: name, AuthorizationRules: accesstest.Rules(name), RequiresSession: name == "orders/tours"})
			continue
		}
		if _, err := b.broker.CreateTopic(t.Context(), entity.Topic{Name: name, AuthorizationRules: accesstest.Rules(name)}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.broker.CreateSubscription(t.Context(), name, entity.Subscription{Name: "all"}); err != nil {
			t.Fatal(err)
		}
	}
	b.keeper.Set(access.Rules{accesstest.Key("", access.Send), accesstest.Key("", access.Listen), accesstest.Key("", access.Manage)})
	return b
}

// connect connects as a credential says, and puts what tokens it has.
func (c *credential) connect(t *testing.T, b *bench) *peerOf {
	if c.Login {
		return b.login(t, accesstest.Key("", c.Rights))
	}
	p := b.anonymous(t, b.keeper)
	if c.Of == accesstest.Nobody {
		return p
	}
	cbs := p.rpc("$cbs")
	defer cbs.receive.Close(p.ctx())
	defer cbs.send.Close(p.ctx())
	for _, target := range matrixTargets {
		rule, status := accesstest.Key("", c.Rights), int32(202)
		switch {
		case c.Of == accesstest.Own:
			rule = accesstest.Key(target, c.Rights)
		case c.Of == accesstest.Another:
			rule, status = accesstest.Key(accesstest.Other, c.Rights), 401
		}
		if c.Void && !c.Revoked {
			status = 401
		}
		put := func(audience string) *amqp.Message {
			return cbs.call("put-token", c.Token(rule, audience), map[string]any{"type": tokenSAS, "name": base + audience})
		}
		checkStatus(t, c.Name+" at "+target, put(target), status)
		if c.Of == accesstest.Another {
			checkStatus(t, c.Name+" at its own", put(accesstest.Other), 202)
		}
	}
	return p
}

// allowed works out what is to be expected.
func (c *credential) allowed(a *action) bool {
	switch {
	case a.open:
		return true
	case c.Void || c.Of == accesstest.Another && !a.anywhere:
		return false
	}
	return c.Rights.Has(a.needs)
}

func TestRightsMatrix(t *testing.T) {
	as := actions()
	if len(operationNames) != len(management.Names()) {
		t.Errorf("%d operations are tried, there are %d", len(operationNames), len(management.Names()))
	}
	cells := make([][]string, len(as))
	for _, who := range accesstest.Credentials(base) {
		c := &credential{who}
		t.Run(c.Name, func(t *testing.T) {
			b := matrixBench(t)
			p := c.connect(t, b)
			if c.Revoked {
				b.keeper.Set(access.Rules{accesstest.Key("", access.Send), accesstest.Key("", access.Listen)})
				b.service.Review()
			}
			if c.Revoked && c.Login {
				<-p.served // there is nothing left to try
				return
			}
			try := &trial{p, p.session()}
			for j := range as {
				a := &as[j]
				err := a.try(try)
				var refused *amqp.Error
				switch {
				case err == nil, errors.Is(err, errStatus):
				case errors.As(err, &refused) && refused.Condition == "amqp:unauthorized-access":
				default:
					t.Errorf("%s: %v", a.name, err)
				}
				if want := c.allowed(a); (err == nil) != want {
					t.Errorf("%s: %v, want allowed: %v", a.name, err, want)
				}
				if !c.Login {
					cells[j] = append(cells[j], cell(err == nil))
				}
			}
		})
	}
	var page strings.Builder
	page.WriteString(accesstest.Heading("operation", base))
	for i, a := range as {
		needs := a.needs.String()
		switch {
		case a.open:
			needs = "nothing"
		case a.anywhere:
			needs = "any right anywhere"
		case needs == "":
			needs = "any right"
		}
		fmt.Fprintf(&page, "| %s | %s | %s |\n", a.name, needs, strings.Join(cells[i], " | "))
	}
	script.Section(t, "../../docs/guide/security.md", "rights by AMQP", page.String())
}

func cell(allowed bool) string {
	if allowed {
		return "yes"
	}
	return "-"
}
