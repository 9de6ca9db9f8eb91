// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"fmt"
	"net/http"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
)

// keyScenes is the attacks by what stored messages become.
var keyScenes = []attack{
	{"core_key_for_each", keyForEach},
	{"core_key_for_each_that_moves", keyForEachThatMoves},
	{"core_keys_in_all_levels", keysInAllLevels},
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
