// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"bytes"
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/message"
)

// turnScenes are the attacks on processors, and on memory while somebody waits for one.
var turnScenes = []attack{
	{"80_peeks_of_many_properties", peeksOfManyProperties},
	{"81_batches_that_wait", batchesThatWait},
	{"82_batches_refused_at_their_end", batchesRefusedAtTheirEnd},
	{"83_rules_that_fail", rulesThatFail},
	{"84_bodies_refused_at_their_end", bodiesRefusedAtTheirEnd},
	{"85_times_without_a_text", timesWithoutAText},
	{"86_receivers_without_credit", receiversWithoutCredit},
}

// scratch creates a queue that is deleted when the scene ends.
func (s *scene) scratch(name, definition string) {
	s.Helper()
	s.define(http.MethodPut, "/queues/"+name, definition)
	s.Cleanup(func() { _, _, _ = s.call(s.ctx, root, http.MethodDelete, "/api/v1/queues/"+name, nil) })
}

// peeksOfManyProperties reads messages of 61 KB, with a property for each six bytes, by
// connections that hardly read what they asked for: as a list, one by one, and as headers.
func peeksOfManyProperties(s *scene) {
	s.scratch("manyproperties", `{}`)
	d := message.Draft{Body: []byte("x")}
	for i := range 9_900 {
		d.Application = append(d.Application, message.Pair{Name: fmt.Sprintf("%x", i), Value: codec.Bool(true)})
	}
	n := scale(300, 600)
	s.fill("manyproperties", n/3, func(int) message.Draft { return d })
	together(n, 64, func(i int) {
		request := []string{
			"GET /api/v1/queues/manyproperties/messages?max=1000",
			"GET /api/v1/queues/manyproperties/messages/1",
			"POST /manyproperties/messages/head?timeout=5",
		}[i%3]
		nc, err := s.dialFrom(s.ctx, net.IPv4(127, 0, 3, byte(1+i/50)))
		if err != nil {
			return
		}
		s.Cleanup(func() { nc.Close() })
		nc.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprintf(nc, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nAuthorization: %s\r\n\r\n", request,
			access.SignToken(listenKey, "http://localhost/", time.Now().Add(time.Hour)))
	})
	pause(s.ctx, 4*time.Second)
}

// emptyBatch is a batch of messages without a byte.
func emptyBatch(n int) []byte { return bytes.Repeat([]byte{0x00, 0x53, 0x75, 0xa0, 0x00}, n) }

// sendersOf has connections send the same batch again and again for a while, and returns how many
// were answered.
func (s *scene) sendersOf(n int, addr string, batch []byte, d time.Duration) (answered int) {
	until := time.Now().Add(d)
	counts := make([]int, n)
	together(n, n, func(i int) {
		p, err := s.connect(net.IPv4(127, 0, 5, byte(1+i/50)))
		if err != nil {
			return
		}
		defer p.nc.Close()
		if p.login(root) != nil {
			return
		}
		if _, err := p.attach(sendTo(0, addr)); err != nil {
			return
		}
		for time.Now().Before(until) && s.ctx.Err() == nil {
			if p.transfer(0, uint32(message.FormatBatch), batch) != nil {
				return
			}
			if err := p.within(time.Until(until) + time.Second).settled(); err != nil && refused(err) == "" {
				return // it still waits
			}
			counts[i]++
		}
	})
	for _, c := range counts {
		answered += c
	}
	return answered
}

// batchesThatWait has some connections keep processors busy with expensive conditions, and many
// wait behind them with batches of few bytes that become a megabyte.
func batchesThatWait(s *scene) {
	s.scratch("dear", `{"policy":{"classes":[{"name":"a","level":9,"when":"p LIKE '%_a_a_a_a_b_%'"}]}}`)
	long := message.Draft{Application: []message.Pair{{Name: "p", Value: codec.String(strings.Repeat("a", 30_000))}}}
	dear := make([]*message.Message, 30)
	for i := range dear {
		dear[i] = long.Message()
	}
	const d = 5 * time.Second
	over := make(chan int, 1)
	go func() { over <- s.sendersOf(30, "dear", message.AppendBatch(nil, dear...), d) }()
	tiny := s.sendersOf(scale(300, 800), "dear", emptyBatch(4500), d)
	s.Logf("%d expensive batches and %d of empty messages were answered", <-over, tiny)
}

// batchesRefusedAtTheirEnd sends batches that take long to examine, and of which nothing is stored.
func batchesRefusedAtTheirEnd(s *scene) {
	n := s.sendersOf(20, "sessions", emptyBatch(4500), 4*time.Second)
	s.Logf("%d batches were refused", n)
	if n == 0 {
		s.Error("no batch was answered")
	}
}

// rulesThatFail sends a batch for which thousands of rules fail, and messages to a queue of
// another owner with an expensive policy, which wait for the same processors.
func rulesThatFail(s *scene) {
	s.define(http.MethodPut, "/topics/failing", `{}`)
	s.Cleanup(func() { _, _, _ = s.call(s.ctx, root, http.MethodDelete, "/api/v1/topics/failing", nil) })
	var rules []string
	for i := range 1000 {
		rules = append(rules, fmt.Sprintf(`{"name":"r%d","filter":{"sql":"a/0=1"}}`, i))
	}
	for i := range scale(8, 14) {
		s.define(http.MethodPut, fmt.Sprintf("/topics/failing/subscriptions/f%d", i), `{"rules":[`+strings.Join(rules, ",")+`]}`)
	}
	s.scratch("tenant", `{"policy":{"classes":[{"name":"a","level":9,"when":"p LIKE '%_a_a_b_%'"}]}}`)
	d := message.Draft{Application: []message.Pair{{Name: "a", Value: codec.Long(1)}}}
	batch := make([]*message.Message, 700)
	for i := range batch {
		batch[i] = d.Message()
	}
	over := make(chan int, 1)
	go func() { over <- s.sendersOf(3, "failing", message.AppendBatch(nil, batch...), 5*time.Second) }()
	long := message.Draft{Application: []message.Pair{{Name: "p", Value: codec.String(strings.Repeat("a", 30_000))}}}
	longest := time.Duration(0)
	for range 10 {
		begin := time.Now()
		if _, err := s.flood(root, "tenant", message.FormatAMQP, 1, func(int) []byte { return long.Encode(nil) }); err != nil {
			s.Errorf("the message of another tenant: %v", err)
		}
		longest = max(longest, time.Since(begin))
	}
	s.Logf("%d batches were answered; another tenant waited %v at most", <-over, longest.Round(time.Millisecond))
	if longest > patience {
		s.Errorf("another tenant waited %v for one message", longest)
	}
}

// bodiesRefusedAtTheirEnd sends JSON and XML that take long to decode, and are refused then.
func bodiesRefusedAtTheirEnd(s *scene) {
	s.scratch("decoded", `{}`)
	many := repeated(300<<10, `{"properties":{"last":{"type":"int","value":5},`, `"p":{"type":"int","value":"1"}`, `}}`)
	for range 2 {
		s.refusedTogether(sendKey, http.MethodPost, "/api/v1/queues/decoded/messages", many)
		s.refusedTogether(root, http.MethodPatch, "/api/v1/queues/decoded", repeated(300<<10, `{"authorizationRules":[`, `{"keyName":"k","rights":["Never"]}`, `]}`))
		s.refusedTogether(root, http.MethodPut, "/decoded?api-version=2021-05", repeated(150<<10, "<entry>", "<a>b</a>", "</entryx>"))
	}
}

// timesWithoutAText sends messages with times that JSON has no text for. They are listed, and so is
// what is behind them.
func timesWithoutAText(s *scene) {
	s.scratch("odd", `{}`)
	for _, ms := range []int64{1 << 52, math.MinInt64} {
		at := codec.Raw([]byte{0x83, byte(ms >> 56), byte(ms >> 48), byte(ms >> 40), byte(ms >> 32), byte(ms >> 24), byte(ms >> 16), byte(ms >> 8), byte(ms)})
		d := message.Draft{Annotations: []message.Pair{{Name: message.AnnotationScheduledEnqueueTime, Value: at}}}
		s.fill("odd", 1, func(int) message.Draft { return d })
	}
	s.fill("odd", 1, func(int) message.Draft { return message.Draft{Body: []byte("behind them")} })
	text, err := s.get(s.ctx, listenKey, "/api/v1/queues/odd/messages")
	if err != nil || !strings.Contains(text, "behind them") {
		s.Errorf("the list is %.300s; %v", text, err)
	}
}

// receiversWithoutCredit attaches thousands of receivers that ask for nothing, and has one that
// gets messages as fast as it can.
func receiversWithoutCredit(s *scene) {
	s.scratch("receivers", `{}`)
	s.fillSmall("receivers", scale(20_000, 100_000))
	each := scale(200, 900)
	for range 8 {
		p := s.peer(listenKey)
		for h := range each {
			a := receiveFrom(uint32(h), "receivers")
			a.Name = fmt.Sprint("idle", h)
			if _, err := p.attach(a); err != nil {
				s.Logf("receiver %d: %v", h, err)
				break
			}
		}
	}
	p := s.peer(listenKey)
	a := receiveFrom(0, "receivers")
	a.SenderSettleMode = frame.SenderSettled
	if _, err := p.attach(a); err != nil {
		s.Fatal(err)
	}
	if err := p.credit(0, 20_000); err != nil {
		s.Fatal(err)
	}
	got := 0
	for until := time.Now().Add(3 * time.Second); time.Now().Before(until) && got < 20_000; {
		if _, err := p.within(patience).receive(); err != nil {
			s.Errorf("after %d messages: %v", got, err)
			return
		}
		got++
	}
	s.Logf("%d messages were received beside %d receivers without credit", got, 8*each)
}
