// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
)

const (
	mostInBatch   = 4500
	mostCopies    = 10_000
	storedBytes   = `triagemq_memory_stored_bytes{part="messages"}`
	storedSetting = "limits.storedMemory"
)

// emptyMessages sends messages without a body, in batches, from some connections, until
// they are refused: to so many queues, or to a topic with so many subscriptions.
func emptyMessages(queues, subscriptions int, definition string, draft func(i int64) message.Draft) func(*scene) {
	return func(s *scene) {
		s.Cleanup(s.backToNothing(s.storedMessages()))
		var addrs []string
		for i := range queues {
			addrs = append(addrs, s.entityFor("queues", fmt.Sprint("empty", i), definition))
		}
		batch := mostInBatch
		if subscriptions > 0 {
			addrs = append(addrs, s.entityFor("topics", "empty", definition))
			for i := range subscriptions {
				s.define(http.MethodPut, fmt.Sprint("/topics/empty/subscriptions/s", i), `{}`)
			}
			batch = mostCopies / subscriptions
		}
		stored := s.fillUp(addrs, batch, draft)
		used := s.storedMessages()
		limit, err := s.metric(s.ctx, "triagemq_memory_stored_limit_bytes")
		if err != nil {
			s.Fatal(err)
		}
		now, _ := s.resident()
		s.Logf("%d messages are stored; %.0f bytes are charged for each, %.1f MiB of %.1f MiB; resident %d MiB",
			stored, used/float64(max(stored, 1)), used/(1<<20), limit/(1<<20), now>>20)
		if used > limit {
			s.Errorf("%.0f bytes are charged of %.0f", used, limit)
		}
		s.fullIsServed(addrs[0], subscriptions > 0)
	}
}

func (s *scene) entityFor(kind, name, definition string) string {
	s.define(http.MethodPut, "/"+kind+"/"+name, definition)
	s.Cleanup(func() { _, _, _ = s.call(context.Background(), root, http.MethodDelete, "/api/v1/"+kind+"/"+name, nil) })
	return name
}

// storedMessages returns what is charged for waiting messages.
func (s *scene) storedMessages() float64 {
	n, err := s.metric(s.ctx, storedBytes)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// backToNothing returns what waits until no more is charged than before, and fails the
// scene if that does not come.
func (s *scene) backToNothing(before float64) func() {
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for {
			now, err := s.metric(ctx, storedBytes)
			if err == nil && now <= before+1<<20 {
				return
			}
			if pause(ctx, 50*time.Millisecond); ctx.Err() != nil {
				s.Errorf("%.0f bytes are charged when all messages are gone, before it were %.0f (%v)", now, before, err)
				return
			}
		}
	}
}

// fillUp sends batches to the addresses until each of the senders was refused, and returns
// how many messages were accepted.
func (s *scene) fillUp(addrs []string, batch int, draft func(i int64) message.Draft) int64 {
	const senders = 4
	var next, accepted atomic.Int64
	together(senders, senders, func(k int) {
		p := s.peer(sendKey)
		for i, addr := range addrs {
			if _, err := p.within(patience).attach(sendTo(uint32(i), addr)); err != nil {
				s.Errorf("attach to %s: %v", addr, err)
				return
			}
		}
		for i := k; s.ctx.Err() == nil && !s.Dead(); i++ {
			ms := make([]*message.Message, batch)
			for j := range ms {
				d := draft(next.Add(1))
				ms[j] = d.Message()
			}
			err := p.within(patience).transfer(uint32(i%len(addrs)), uint32(message.FormatBatch), message.AppendBatch(nil, ms...))
			if err == nil {
				err = p.settled()
			}
			switch {
			case err == nil:
				accepted.Add(int64(batch))
				continue
			case refused(err) != "amqp:resource-limit-exceeded" || !strings.Contains(err.Error(), storedSetting):
				s.Errorf("after %d messages: %v", accepted.Load(), err)
			}
			return
		}
	})
	return accepted.Load()
}

// fullIsServed wants HTTP senders to be refused, and receivers to go on.
func (s *scene) fullIsServed(addr string, topic bool) {
	full := func() bool {
		resp, text, err := s.call(s.ctx, sendKey, http.MethodPost, "/api/v1/"+map[bool]string{false: "queues/", true: "topics/"}[topic]+addr+"/messages",
			strings.NewReader(`[`+strings.TrimSuffix(strings.Repeat(`{"body": "x", "sessionId": "another"},`, 40), ",")+`]`), "Content-Type", "application/json")
		if err != nil {
			s.Fatal(err)
		}
		if resp.StatusCode == http.StatusForbidden && (!strings.Contains(text, `"quota"`) || !strings.Contains(text, storedSetting)) {
			s.Errorf("HTTP answers %s", text)
		}
		return resp.StatusCode == http.StatusForbidden
	}
	for i := 0; !full(); i++ { // the last bytes
		if i > 1000 {
			s.Fatal("HTTP is never refused")
		}
	}
	c, err := client.Dial(s.ctx, "amqp://"+listenKey.Name+":"+listenKey.PrimaryKey+"@"+s.Addr, nil)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	from := addr
	if topic {
		from += "/subscriptions/s0"
	}
	in, err := c.OpenReceiver(s.ctx, from, nil)
	if err != nil {
		if strings.Contains(err.Error(), "session") {
			return
		}
		s.Fatal(err)
	}
	ms, err := in.Receive(s.ctx, 100)
	if err != nil || len(ms) == 0 {
		s.Fatalf("%d messages are received: %v", len(ms), err)
	}
	if err := in.DeadLetter(s.ctx, ms[0], "because", ""); err != nil {
		s.Errorf("dead-letter a message: %v", err)
	}
	if err := in.Complete(s.ctx, ms[1:]...); err != nil {
		s.Errorf("complete messages: %v", err)
	}
}

// fullRestart fills a broker of its own, kills it, and starts it again on its store.
func fullRestart(s *scene) {
	dir := s.T.TempDir()
	for round := range 2 {
		b, err := start(dir, configuration())
		if err != nil {
			s.Fatalf("start %d: %v", round, err)
		}
		s.Cleanup(b.Kill)
		own := &scene{T: s.T, broker: b, ctx: s.ctx}
		if round == 0 {
			own.define(http.MethodPut, "/queues/ids", `{"requiresDuplicateDetection": true, "duplicateDetectionHistoryTimeWindow": "P1D"}`)
			n := own.fillUp([]string{"noise", "sessions", "ids"}, mostInBatch, func(i int64) message.Draft {
				return message.Draft{MessageID: codec.Ulong(uint64(i)), SessionID: fmt.Sprint(i % 10_000)}
			})
			now, peak := b.resident()
			s.Logf("%d messages in three queues; resident %d MiB, at most %d MiB, %.1f MiB charged", n, now>>20, peak>>20, own.storedMessages()/(1<<20))
			b.Kill()
			own.end()
			continue
		}
		now, peak := b.resident()
		s.Logf("after the start: resident %d MiB, at most %d MiB, %.1f MiB charged", now>>20, peak>>20, own.storedMessages()/(1<<20))
		if peak > maxResident {
			s.Errorf("the start took %d MiB", peak>>20)
		}
		n := own.fillUp([]string{"noise"}, 100, func(int64) message.Draft { return message.Draft{} })
		s.Logf("%d more are stored", n)
		own.fullIsServed("noise", false)
		own.end()
		b.Kill()
	}
}
