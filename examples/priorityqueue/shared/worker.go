// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
)

// Handler is the part of a worker that you write.
type Handler interface {
	// Process does the work of one message. After an error the message is abandoned
	// and delivered again. instance names the worker, such as high-2.
	Process(ctx context.Context, instance string, m *client.Received) error
}

// Worker takes messages from one subscription and has Handler process them. All of
// its fields are required.
type Worker struct {
	Client       *client.Client
	Topic        string
	Subscription string
	Instances    int // how many messages are processed at a time
	Handler      Handler
}

// Run works until ctx ends. It returns the first error of an instance, after all of
// them have ended.
func (w Worker) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	for n := range w.Instances {
		wg.Go(func() {
			if err := w.instance(ctx, fmt.Sprintf("%s-%d", w.Subscription, n+1)); err != nil {
				stop(err)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// instance processes one message after another.
func (w Worker) instance(ctx context.Context, name string) error {
	receiver, err := w.Client.OpenReceiver(ctx, client.Subscription(w.Topic, w.Subscription), nil)
	if err != nil {
		return err
	}
	for m, err := range receiver.Messages(ctx) {
		if err != nil {
			return unlessStopped(ctx, err)
		}
		if err := settle(ctx, receiver, m, w.Handler.Process(ctx, name, m)); err != nil {
			return err
		}
	}
	return nil
}

// settleTime is the time to settle a processed message, even if the worker was
// stopped: otherwise it would be processed again.
const settleTime = 5 * time.Second

// settle says what became of a message.
func settle(ctx context.Context, r *client.Receiver, m *client.Received, failure error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if failure != nil {
		return r.Abandon(ctx, m, map[string]any{"Failure": failure.Error()})
	}
	return r.Complete(ctx, m)
}

// unlessStopped drops an error that only says that the worker was stopped.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
