// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
)

// keyScenes is the attacks by what stored messages become, and by requests that name many.
var keyScenes = []attack{
	{"core_key_for_each", keyForEach},
	{"core_key_for_each_that_moves", keyForEachThatMoves},
	{"core_keys_in_all_levels", keysInAllLevels},
	{"core_many_tokens", manyTokens},
}

// numbered is an empty message with an id of its own.
func numbered(i int64) message.Draft { return message.Draft{MessageID: codec.String(fmt.Sprint(i))} }

// keyForEach fills the memory for messages, and then has a policy give each of them a fair key
// of its own.
func keyForEach(s *scene) {
	s.Cleanup(s.backToNothing(s.storedMessages()))
	addr := s.entityFor("queues", "keyed", `{"policy": {"fairKey": "sys.Label"}}`)
	n := s.fillUp([]string{addr}, mostInBatch, numbered)
	s.define(http.MethodPatch, "/queues/keyed", `{"policy": {"fairKey": "sys.MessageId"}}`)
	const done = "messages are in turn without a fair key"
	for before := s.logged(done); s.logged(done) == before && s.ctx.Err() == nil && !s.Dead(); {
		pause(s.ctx, 50*time.Millisecond)
	}
	s.wantNotOutgrown(n)
}

// keyForEachThatMoves fills the memory for messages, and then forwards them to a queue with a
// fair key for each.
func keyForEachThatMoves(s *scene) {
	s.Cleanup(s.backToNothing(s.storedMessages()))
	s.entityFor("queues", "target", `{"policy": {"fairKey": "sys.MessageId"}}`)
	addr := s.entityFor("queues", "origin", `{}`)
	n := s.fillUp([]string{addr}, mostInBatch, numbered)
	s.define(http.MethodPatch, "/queues/origin", `{"forwardTo": "target"}`)
	pause(s.ctx, time.Duration(scale(3, 30))*time.Second)
	s.wantNotOutgrown(n)
}

// keysInAllLevels sends messages of few fair keys in all levels.
func keysInAllLevels(s *scene) {
	s.Cleanup(s.backToNothing(s.storedMessages()))
	addr := s.entityFor("queues", "levels", `{"policy": {"fairKey": "sys.Label"}}`)
	n := s.fillUp([]string{addr}, mostInBatch, func(i int64) message.Draft {
		return message.Draft{Subject: fmt.Sprint(i / 256), Priority: uint8(i % 256), PrioritySet: true}
	})
	s.wantNotOutgrown(n)
}

// wantNotOutgrown fails the scene if more is charged for messages than the limit.
func (s *scene) wantNotOutgrown(n int64) {
	s.Helper()
	limit, err := s.metric(s.ctx, "triagemq_memory_stored_limit_bytes")
	if err != nil {
		s.Fatal(err)
	}
	used := s.storedMessages()
	now, _ := s.resident()
	s.Logf("%d messages: %.1f MiB are charged of %.1f MiB; resident %d MiB", n, used/(1<<20), limit/(1<<20), now>>20)
	if used > limit*3/4 {
		s.Errorf("%.0f bytes are charged of %.0f for messages", used, limit*3/4)
	}
}

// manyTokens settles very many messages that do not exist, in many requests at once.
func manyTokens(s *scene) {
	const conns, each = 50, 10_000
	addr := s.entityFor("queues", "tokens", `{}`)
	tokens := make([][16]byte, each)
	for i := range tokens {
		tokens[i] = [16]byte{1, byte(i), byte(i >> 8)}
	}
	settle := request("com.microsoft:update-disposition", codec.Map(codec.String("lock-tokens"), codec.Raw(codec.AppendUUIDArray(nil, tokens)),
		codec.String("disposition-status"), codec.String("completed")))
	var asked atomic.Int64
	until := time.Now().Add(time.Duration(scale(2, 20)) * time.Second)
	together(conns, conns, func(int) {
		d, err := s.peer(listenKey).within(patience).talk(addr+"/$management", 0)
		for err == nil && time.Now().Before(until) {
			if _, _, err = d.within(patience).ask(settle); err == nil {
				asked.Add(1)
			}
		}
		if err != nil {
			s.Errorf("settle: %v", err)
		}
	})
	s.Logf("%d requests, each for %d messages", asked.Load(), each)
}
