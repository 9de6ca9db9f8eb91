// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/triagemq/triagemq/client"
)

// JSON makes a handler of a function of the decoded body. A body that cannot be decoded
// is a dead letter for the reason "InvalidJSON": it would not get better.
func JSON[T any](f func(ctx context.Context, t *Task, v T) error) Handler {
	return HandlerFunc(func(ctx context.Context, t *Task) error {
		var v T
		if err := json.Unmarshal(t.Body, &v); err != nil {
			return DeadLetter("InvalidJSON", err)
		}
		return f(ctx, t, v)
	})
}

// Logging returns a middleware that logs each run of the handler with its time: failures as
// warnings, the others for debugging. Failures are in the log of the pool as well, bounded.
func Logging(log *slog.Logger) Middleware {
	return func(next Handler) Handler {
		return HandlerFunc(func(ctx context.Context, t *Task) error {
			began := time.Now()
			err := next.Handle(ctx, t)
			level, text := slog.LevelDebug, "message handled"
			if err != nil {
				level, text = slog.LevelWarn, "handler failed"
			}
			attrs := []slog.Attr{
				slog.String("pool", t.Pool), slog.String("source", t.Source), slog.Int64("message", int64(t.SeqNo)),
				slog.Uint64("failures", uint64(t.DeliveryCount)), slog.Duration("took", time.Since(began)),
			}
			if err != nil {
				attrs = append(attrs, slog.Any("err", err))
			}
			log.LogAttrs(ctx, level, text, attrs...)
			return err
		})
	}
}

// errNoPool is returned by Reply for a task that no pool runs.
var errNoPool = errors.New("worker: task has no pool")

// Reply answers the message of a task: the answer goes to the very client that asked. It
// is as urgent as the question and lives as long as the question would, unless m says
// otherwise. When the question has expired, or its client is gone, nobody waits for the
// answer: it is dropped, and Reply returns nil.
func Reply(ctx context.Context, t *Task, m *client.Message) error {
	if t.attempt == nil || t.attempt.run.pool.Client == nil {
		return errNoPool
	}
	answer := *m
	if answer.Priority == "" {
		answer.Priority = client.Level(levelOf(t.Received))
	}
	if answer.TTL == 0 && t.TTL > 0 && !t.Enqueued.IsZero() {
		answer.TTL = t.TTL - time.Since(t.Enqueued)
		if answer.TTL <= 0 {
			return nil
		}
	}
	err := t.attempt.run.pool.Client.Reply(ctx, t.Received, &answer)
	if errors.Is(err, client.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("worker: reply: %w", err)
	}
	return nil
}
