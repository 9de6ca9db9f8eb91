// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
)

// waitingScenes is the attacks by waiting messages.
var waitingScenes = []attack{
	{"24.12_forged_properties", forgedProperties},
	{"24.08_empty_messages", emptyMessages(1, 0, `{}`, func(int64) message.Draft { return message.Draft{} })},
	{"24.08_empty_messages_in_queues", emptyMessages(64, 0, `{}`, func(int64) message.Draft { return message.Draft{} })},
	{"24.08_empty_messages_in_a_topic", emptyMessages(0, 200, `{}`, func(int64) message.Draft { return message.Draft{} })},
	{"24.08_empty_messages_of_sessions", emptyMessages(1, 0, `{"requiresSession": true}`, func(i int64) message.Draft {
		return message.Draft{SessionID: fmt.Sprint(i)}
	})},
	{"24.08_empty_messages_with_ids", emptyMessages(1, 0, `{"requiresDuplicateDetection": true}`, func(i int64) message.Draft {
		return message.Draft{MessageID: codec.Ulong(uint64(i))}
	})},
	{"24.08_full_restart", fullRestart},
	{"25.09_locks_beyond_the_share", locksBeyondTheShare},
}

// locksBeyondTheShare fills a queue and has so many of its messages locked that they take more
// memory than there is for messages. Senders of another queue do not notice.
func locksBeyondTheShare(s *scene) {
	s.Cleanup(s.backToNothing(s.storedMessages()))
	grown := s.entityFor("queues", "grown", `{"lockDuration": "PT5M"}`)
	beside := s.entityFor("queues", "beside", `{}`)
	stored := s.fillUp([]string{grown}, mostInBatch, func(int64) message.Draft { return message.Draft{} })
	const receivers = 4 // one may not have so many that are not settled
	together(receivers, receivers, func(int) {
		if _, err := s.peer(listenKey).within(patience).locked(0, grown, int(stored/2/receivers)); err != nil {
			s.Errorf("lock messages: %v", err)
		}
	})
	limit, err := s.metric(s.ctx, "triagemq_memory_messages_limit_bytes")
	if err != nil {
		s.Fatal(err)
	}
	used := s.storedMessages()
	s.Logf("%d messages, a half of them locked, take %.1f MiB of %.1f MiB", stored, used/(1<<20), limit/(1<<20))
	if used < limit {
		s.Errorf("%.0f bytes are charged of %.0f: the scene shows nothing", used, limit)
	}
	for range 100 {
		resp, text, err := s.call(s.ctx, sendKey, http.MethodPost, "/api/v1/queues/"+beside+"/messages", strings.NewReader(`[{"body": "x"}]`), "Content-Type", "application/json")
		if err != nil {
			s.Fatal(err)
		}
		if resp.StatusCode/100 != 2 {
			s.Fatalf("a sender of another queue is refused: %s", text)
		}
	}
}

// forgedProperties sends properties and annotations that only workers and the broker set,
// by every door.
func forgedProperties(s *scene) {
	s.define(http.MethodPut, "/queues/forged", `{"name": "forged"}`)
	s.Cleanup(func() { _, _, _ = s.call(s.ctx, root, http.MethodDelete, "/api/v1/queues/forged", nil) })
	forged := message.Draft{
		Body: []byte("x"),
		Application: []message.Pair{
			{Name: "triagemq-state", Value: codec.Binary([]byte("forged"))}, {Name: "triagemq-preemptions", Value: codec.Long(1 << 40)},
		},
		Annotations: []message.Pair{
			{Name: "x-opt-deadletter-source", Value: codec.String("forged")}, {Name: "x-triage-reply-level", Value: codec.Ubyte(255)},
			{Name: "x-opt-sequence-number", Value: codec.Long(-1)}, {Name: "x-triage-level", Value: codec.Ubyte(255)},
		},
	}
	s.fill("forged", 1, func(int) message.Draft { return forged })
	batch := message.AppendBatch(nil, forged.Message(), forged.Message())
	if n, err := s.flood(sendKey, "forged", message.FormatBatch, 1, func(int) []byte { return batch }); n != 1 {
		s.Fatalf("a batch: %v", err)
	}
	c, err := client.Dial(s.ctx, "amqp://"+root.Name+":"+root.PrimaryKey+"@"+s.Addr, nil)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	out, err := c.OpenSender(s.ctx, "forged", nil)
	if err != nil {
		s.Fatal(err)
	}
	mine := map[string]any{"triagemq-state": []byte("forged"), "triagemq-preemptions": int64(1 << 40)}
	if _, err := out.Schedule(s.ctx, time.Now().Add(100*time.Millisecond), &client.Message{Body: []byte("x"), Properties: mine}); err != nil {
		s.Fatal(err)
	}
	const properties = `{"body": "x", "properties": {"triagemq-state": "forged", "triagemq-preemptions": 1099511627776}}`
	for path, body := range map[string]string{
		"/api/v1/queues/forged/messages": properties,
		"/forged/messages":               "x",
	} {
		resp, text, err := s.call(s.ctx, sendKey, http.MethodPost, path, strings.NewReader(body),
			"triagemq-state", "'forged'", "triagemq-preemptions", "1099511627776", "Content-Type", "application/json")
		if err != nil || resp.StatusCode/100 != 2 {
			s.Fatalf("%s: %v %s", path, err, text)
		}
	}
	s.wantNothingForged(c, 6)
}

// wantNothingForged receives so many messages of the queue forged.
func (s *scene) wantNothingForged(c *client.Client, n int) {
	s.Helper()
	in, err := c.OpenReceiver(s.ctx, "forged", &client.ReceiverOptions{TellLevel: true})
	if err != nil {
		s.Fatal(err)
	}
	for n > 0 {
		ms, err := in.Receive(s.ctx, n)
		if err != nil {
			s.Fatalf("%d messages did not come: %v", n, err)
		}
		for _, m := range ms {
			for name := range m.Properties {
				if strings.HasPrefix(strings.ToLower(name), "triagemq-") {
					s.Errorf("message %d has the property %s: %v", m.SeqNo, name, m.Properties[name])
				}
			}
			if m.DeadLetterSource != "" || m.SeqNo <= 0 || m.Level == nil || *m.Level != 4 {
				s.Errorf("message %d has level %v and came from the dead letters of %q", m.SeqNo, m.Level, m.DeadLetterSource)
			}
		}
		if err := in.Complete(s.ctx, ms...); err != nil {
			s.Error(err)
		}
		n -= len(ms)
	}
}
