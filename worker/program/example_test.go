// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"context"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker"
	"github.com/triagemq/triagemq/worker/program"
)

// Four scripts at a time. A message of a higher level stops the lowest with SIGSTOP, and
// it goes on with SIGCONT when a slot is free.
func ExampleHandler() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := client.New(os.Getenv("TRIAGEMQ_CONNECTION_STRING"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	h := program.Handler{
		Command: []string{"./render.sh", "--quality", "high"},
		Env:     []string{"RENDER_CACHE=/var/cache/renders"},
		Reply:   c.Reply, // standard output, for messages that ask for a reply
	}
	if err := h.Check(); err != nil {
		log.Fatal(err) // before it fails message after message
	}
	pool := worker.Pool{
		Client: c, Source: "renders", Slots: 4, Handler: h,
		Preempt: &worker.Preemption{MinRun: 2 * time.Second},
		Timeout: 30 * time.Minute,
	}
	if err := pool.Run(ctx); err != nil {
		log.Print(err)
	}
}
