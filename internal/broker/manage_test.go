// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// A number that is named twice is cancelled once, and a request that fails cancels
// nothing (B11).
func TestCancelScheduledIsAllOrNothing(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	d := message.Draft{Body: []byte("later"), Annotations: []message.Pair{{
		Name: message.AnnotationScheduledEnqueueTime, Value: codec.Timestamp(time.Now().Add(time.Hour))}}}
	seqs, err := r.Schedule(t.Context(), "q", []*message.Message{d.Message(), d.Message(), d.Message()}, SenderOptions{})
	if err != nil {
		t.Fatalf("schedule: %v", err)
	}
	for _, step := range []struct {
		cancel []queue.SeqNo
		want   error
		left   int64
	}{
		{[]queue.SeqNo{seqs[0], 999}, ErrMessageNotFound, 3},
		{[]queue.SeqNo{seqs[0], seqs[0]}, nil, 2},
		{[]queue.SeqNo{seqs[0]}, ErrMessageNotFound, 2},
		{[]queue.SeqNo{seqs[2], seqs[1], seqs[2], seqs[1]}, nil, 0},
	} {
		if err := r.CancelScheduled(t.Context(), "q", step.cancel); !errors.Is(err, step.want) {
			t.Errorf("cancel %v: got %v, want %v", step.cancel, err, step.want)
		}
		rt, err := r.Runtime(t.Context(), "q")
		if err != nil || rt.Scheduled != step.left {
			t.Errorf("after cancel %v: %d scheduled, %v, want %d", step.cancel, rt.Scheduled, err, step.left)
		}
	}
}
