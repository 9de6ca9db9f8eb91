// SPDX-License-Identifier: Apache-2.0

package brokertest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// Strand writes a store with one topic that has messages among its dead letters
// and as many among its transfer dead letters. Earlier versions put them there when
// a topic was paused; there is no such way any more, but stores that have them.
func Strand(t testing.TB, topic string, bodies ...string) *vfs.Mem {
	t.Helper()
	disk := vfs.NewMem()
	w, err := wal.Open(disk, wal.Options{SegmentSize: segmentSize})
	if err != nil {
		t.Fatalf("open the journal: %v", err)
	}
	s, err := queueserver.Open(t.Context(), w, 0, queueserver.Options{})
	if err != nil {
		t.Fatalf("open the shard: %v", err)
	}
	low, stopLow := context.WithCancel(t.Context())
	upper, stopUpper := context.WithCancel(t.Context())
	var lower, higher sync.WaitGroup
	lower.Go(func() { _ = w.Run(low) })
	higher.Go(func() { _ = s.Run(upper) })
	if err := strand(s, topic, bodies); err != nil {
		t.Fatalf("strand messages in %q: %v", topic, err)
	}
	stopUpper()
	higher.Wait()
	stopLow()
	lower.Wait()
	if err := w.Close(); err != nil {
		t.Fatalf("close the journal: %v", err)
	}
	return disk
}

func strand(s *queueserver.Shard, topic string, bodies []string) error {
	meta, err := json.Marshal(map[string]any{
		"kind": "topic", "topic": entity.Topic{Name: topic}.WithDefaults(), "created": time.Now(), "updated": time.Now(),
	})
	if err != nil {
		return err
	}
	dead := queue.Config{LockFor: time.Minute, DeadLetterQueue: true}
	id, err := queueserver.Finish(s, queueserver.Define{
		Definition: queueserver.Definition{Name: topic, Meta: meta},
		Configs: map[queueserver.SubQueue]queue.Config{
			queueserver.Main: {LockFor: time.Minute}, queueserver.DeadLetter: dead, queueserver.TransferDeadLetter: dead,
		},
	})
	if err != nil {
		return fmt.Errorf("define: %w", err)
	}
	answer := make(chan error, 1)
	send := &queueserver.Send{Done: func(_ []queue.SeqNo, err error) { answer <- err }}
	for _, part := range []queueserver.SubQueue{queueserver.DeadLetter, queueserver.TransferDeadLetter} {
		for _, b := range bodies {
			d := message.Draft{Body: []byte(b)}
			send.Copies = append(send.Copies, queueserver.Copy{ID: id, SubQueue: part, Body: len(send.Bodies), Arrival: queue.Arrival{Level: queue.DefaultLevel}})
			send.Bodies = append(send.Bodies, d.Message())
		}
	}
	if err := s.Send(send); err != nil {
		return err
	}
	return <-answer
}
