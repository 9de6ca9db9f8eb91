// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/message"
)

// define makes or changes something over HTTP, and must succeed.
func (s *scene) define(method, path, body string) {
	s.Helper()
	resp, text, err := s.call(s.ctx, root, method, "/api/v1"+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if resp.StatusCode/100 != 2 {
		s.Fatalf("%s %s answered %s: %s", method, path, resp.Status, text)
	}
}

// keyed is the definition of a queue with its own key.
func keyed(name, key string) string {
	rules := ""
	if key != "" {
		rules = fmt.Sprintf(`{"keyName": "worker", "rights": ["Send", "Listen"], "primaryKey": %q}`, key)
	}
	return fmt.Sprintf(`{"name": %q, "authorizationRules": [%s]}`, name, rules)
}

// revokedKeys is number 10: a key is removed while a connection uses it, and
// the queue is deleted and created again with another.
func revokedKeys(s *scene) {
	old := access.Rule{Name: "worker", Rights: access.Send | access.Listen, PrimaryKey: "the-old-and-long-key"}
	s.define(http.MethodPut, "/queues/revoked", keyed("revoked", old.PrimaryKey))
	s.Cleanup(func() { _, _, _ = s.call(s.ctx, root, http.MethodDelete, "/api/v1/queues/revoked", nil) })
	connect := func() *peer {
		p := s.outsider()
		if err := p.putToken(old, "revoked", time.Now().Add(time.Hour), 10); err != nil {
			s.Fatal(err)
		}
		return p
	}
	open, idle := connect(), connect()
	if _, err := open.attach(sendTo(0, "revoked")); err != nil {
		s.Fatal(err)
	}
	if err := open.hello(0); err != nil {
		s.Fatalf("with a valid key: %v", err)
	}
	s.define(http.MethodPut, "/queues/revoked", keyed("revoked", "another-long-key"))
	s.wantNoEntry("after its key was changed", open, idle, 1)
	s.define(http.MethodDelete, "/queues/revoked", "")
	s.define(http.MethodPut, "/queues/revoked", keyed("revoked", ""))
	s.wantNoEntry("after the queue was deleted and made again", nil, idle, 2)
}

// hello sends a small message over a link.
func (p *peer) hello(handle uint32) error {
	d := message.Draft{Body: []byte("hello")}
	if err := p.within(patience).transfer(handle, 0, d.Encode(nil)); err != nil {
		return err
	}
	return p.settled()
}

// wantNoEntry fails the test if a link that is open can be used, or another be opened.
func (s *scene) wantNoEntry(when string, open, idle *peer, handle uint32) {
	s.Helper()
	if open != nil {
		var err error
		for range 30 { // it may take a moment
			if err = open.hello(0); err != nil {
				break
			}
			pause(s.ctx, 100*time.Millisecond)
		}
		if err == nil {
			s.Errorf("%s an open link can still be used to send", when)
		}
	}
	if _, err := idle.within(patience).attach(receiveFrom(handle, "revoked")); err == nil {
		s.Errorf("%s a link can still be opened", when)
	}
}

// keyOfAnotherEntity is number 11: the key of the queue own is used on
// own/below, which is another queue.
func keyOfAnotherEntity(s *scene) {
	p := s.outsider()
	later := time.Now().Add(time.Hour)
	d, err := p.talk("$cbs", 0)
	if err == nil {
		err = d.token(ownKey, "sb://localhost/own", later)
	}
	if err != nil {
		s.Fatal(err)
	}
	for i, addr := range []string{"own/below", "own/below/$DeadLetterQueue", "own/below/$management"} {
		if _, err := p.attach(receiveFrom(uint32(10+i), addr)); err == nil {
			s.Errorf("the key of own opens %s", addr)
		}
	}
	if err := d.token(ownKey, "sb://localhost/own/below", later); err == nil {
		s.Error("the key of own signs for own/below")
		if _, err := p.attach(sendTo(20, "own/below")); err == nil {
			s.Error("and opens it")
		}
	}
	for i, addr := range []string{"own", "own/$DeadLetterQueue", "own/$management"} {
		if _, err := p.attach(receiveFrom(uint32(30+i), addr)); err != nil {
			s.Errorf("the key of own does not open %s: %v", addr, err)
		}
	}
	token := access.SignToken(ownKey, "http://localhost/own", later)
	resp, _, err := s.call(s.ctx, nobody, http.MethodPost, "/own/below/messages", strings.NewReader("x"), "Authorization", token)
	if err != nil {
		s.Fatal(err)
	}
	if resp.StatusCode/100 == 2 {
		s.Errorf("the key of own sends to own/below over HTTP: %s", resp.Status)
	}
}

// linksAfterExpiry is number 14: a receiver whose token has expired gets no
// more messages, although its connection stays open.
func linksAfterExpiry(s *scene) {
	const links = 20
	p := s.outsider()
	expires := time.Now().Add(3 * time.Second)
	if err := p.putToken(listenKey, "expiring", expires, 1000); err != nil {
		s.Fatal(err)
	}
	before, err := s.metric(s.ctx, "go_goroutines")
	if err != nil {
		s.Fatal(err)
	}
	for i := range uint32(links) {
		a := receiveFrom(i, "expiring")
		if i%2 == 0 {
			a.Properties = sources("expiring", "expiring/$DeadLetterQueue")
		} else {
			a.SenderSettleMode = frame.SenderSettled // receive and delete
		}
		if _, err := p.attach(a); err != nil {
			s.Fatal(err)
		}
		if err := p.credit(i, 10); err != nil {
			s.Fatal(err)
		}
	}
	detached := 0
	for detached < links {
		in, err := p.within(patience).read()
		if err != nil {
			s.Fatalf("%d of %d links were detached: %v", detached, links, err)
		}
		if in.code == frame.CodeDetach { // which is not answered
			detached++
		}
	}
	var open, goroutines float64
	for range 40 {
		open, err = s.metric(s.ctx, `triagemq_receivers{entity="expiring",kind="queue"}`)
		if err != nil {
			s.Fatal(err)
		}
		if goroutines, err = s.metric(s.ctx, "go_goroutines"); err == nil && open == 0 && goroutines <= before+spareGoroutines {
			break
		}
		pause(s.ctx, 50*time.Millisecond)
	}
	if open != 0 || goroutines > before+spareGoroutines {
		s.Errorf("after their token has expired %v receivers are open, and there are %v goroutines; before there were %v", open, goroutines, before)
	}
	s.fillSmall("expiring", 100)
	r := s.peer(root)
	got, err := r.within(2*time.Second).locked(0, "expiring", 100)
	if len(got) != 100 {
		s.Errorf("%d of 100 messages are left that were sent after the token had expired: %v", len(got), err)
	}
}

// foreignSession is number 15: the lock and the state of a session belong to
// its receiver.
func foreignSession(s *scene) {
	s.fill("sessions", 1, func(int) message.Draft { return message.Draft{SessionID: "mine", Body: []byte("x")} })
	holder := s.peer(root)
	a := receiveFrom(0, "sessions")
	filter, at := codec.BeginMap(nil)
	filter = codec.AppendString(codec.AppendSymbol(filter, "com.microsoft:session-filter"), "mine")
	a.Source.Filter = codec.EndMap(filter, at, 1)
	if _, err := holder.attach(a); err != nil {
		s.Fatal(err)
	}
	for _, operation := range []string{"renew-session-lock", "set-session-state"} {
		other, err := s.peer(listenKey).talk("sessions/$management", 0)
		if err != nil {
			s.Fatal(err)
		}
		status, _, err := other.operation(operation, codec.String("session-id"), codec.String("mine"),
			codec.String("session-state"), codec.Binary([]byte("theirs")))
		if err != nil || status/100 == 2 {
			s.Errorf("%s of a session that another receiver has locked: %d, %v", operation, status, err)
		}
	}
	mine, err := holder.talk("sessions/$management", 1)
	if err != nil {
		s.Fatal(err)
	}
	status, _, err := mine.ask(request("com.microsoft:set-session-state",
		codec.Map(codec.String("session-id"), codec.String("mine"), codec.String("session-state"), codec.Binary([]byte("mine"))),
		message.Pair{Name: "associated-link-name", Value: codec.String(a.Name)}))
	if err != nil || status/100 != 2 {
		s.Errorf("set-session-state by its receiver: %d, %v", status, err)
	}
}

// sources are the properties of a link that receives from several queues.
func sources(addrs ...string) []byte {
	var list []codec.Value
	for _, addr := range addrs {
		list = append(list, codec.String(addr))
	}
	b, at := codec.BeginMap(nil)
	b = codec.AppendSymbol(b, "triagemq:sources")
	b = codec.AppendValue(b, codec.List(list...))
	return codec.EndMap(b, at, 1)
}

// setAfterExpiry is number 19: a receiver of two queues has a token for each, and the
// second expires.
func setAfterExpiry(s *scene) {
	p := s.outsider()
	expires := time.Now().Add(3 * time.Second) // a token knows whole seconds
	d, err := p.talk("$cbs", 100)
	if err == nil {
		err = d.token(listenKey, "sb://localhost/first", time.Now().Add(time.Hour))
	}
	if err == nil {
		err = d.token(listenKey, "sb://localhost/second", expires)
	}
	if err != nil {
		s.Fatal(err)
	}
	a := receiveFrom(0, "first")
	a.Properties = sources("first", "second")
	if _, err := p.attach(a); err != nil {
		s.Fatal(err)
	}
	pause(s.ctx, time.Until(expires))
	s.fillSmall("second", 1)
	if err := p.credit(0, 10); err != nil {
		return // closed: nothing comes
	}
	if payload, err := p.within(time.Second).receive(); err == nil {
		s.Errorf("%d bytes were received from a queue whose token has expired", len(payload))
	}
}

// relayToManagement is about a message to the node of requests, over the
// anonymous link: it would never be answered.
func relayToManagement(s *scene) {
	p := s.peer(root)
	if _, err := p.attach(sendTo(0, "")); err != nil {
		s.Fatal(err)
	}
	for _, to := range []string{"relayed/$management", "$cbs", "$management"} {
		d := message.Draft{To: to, Body: []byte("x")}
		err := p.within(patience).transfer(0, 0, d.Encode(nil))
		if err == nil {
			err = p.settled()
		}
		if err == nil {
			s.Errorf("a message to %s was accepted", to)
		}
	}
}

// leavingInARequest is about clients that leave while their request is served: that is
// nothing for an operator to act on.
func leavingInARequest(s *scene) {
	s.fillSmall("noise", 2000)
	before := s.logged("level=ERROR")
	together(20, 32, func(int) {
		nc, err := s.dialFrom(s.ctx, net.IPv4(127, 0, 0, 1))
		if err != nil {
			s.Error(err)
			return
		}
		fmt.Fprintf(nc, "GET /api/v1/queues/noise/messages?max=1000&filter=sys.Label+LIKE+%%27%%25a%%25%%27 HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\n\r\n",
			access.SignToken(root, "http://localhost/", time.Now().Add(time.Hour)))
		pause(s.ctx, 2*time.Millisecond)
		nc.Close()
		p, err := s.connect(net.IPv4(127, 0, 0, 1))
		if err == nil {
			err = p.login(root)
		}
		var d *dialogue
		if err == nil {
			d, err = p.talk("noise/$management", 0)
		}
		if err != nil {
			s.Error(err)
			return
		}
		_ = d.transfer(d.to, 0, request("com.microsoft:peek-message", codec.Map(
			codec.String("from-sequence-number"), codec.Long(0), codec.String("message-count"), codec.Int(1000))))
		p.nc.Close()
	})
	pause(s.ctx, 200*time.Millisecond)
	if n := s.logged("level=ERROR") - before; n > 0 {
		s.Errorf("%d errors were logged\n%s", n, s.LastWords())
	}
}
