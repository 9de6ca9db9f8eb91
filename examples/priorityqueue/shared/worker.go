// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"context"
	"fmt"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker"
)

// Handler is the part of a worker that you write.
type Handler interface {
	// Process does the work of one message. After an error the message is delivered
	// again, later. instance names the worker, such as high-2.
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

// Run works until ctx ends and everything that was begun is done.
func (w Worker) Run(ctx context.Context) error {
	names := make(chan string, w.Instances) // those that have no message
	for n := range w.Instances {
		names <- fmt.Sprintf("%s-%d", w.Subscription, n+1)
	}
	pool := worker.Pool{
		Client: w.Client,
		Name:   w.Subscription,
		Source: client.Subscription(w.Topic, w.Subscription),
		Slots:  w.Instances,
		Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
			name := <-names
			defer func() { names <- name }()
			return w.Handler.Process(ctx, name, t.Received)
		}),
	}
	return pool.Run(ctx)
}
