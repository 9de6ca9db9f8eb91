// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/vfs"
)

// The environment that makes a process of this test binary a child.
const (
	childDir  = "TRIAGEMQ_CRASH_DIR"
	childLife = "TRIAGEMQ_CRASH_LIFE"
)

func TestMain(m *testing.M) {
	dir := os.Getenv(childDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	run := child
	if os.Getenv(childHub) != "" {
		run = hubChild
	}
	if err := run(context.Background(), dir, os.Getenv(childLife)); err != nil {
		say("failed", err.Error())
		os.Exit(1)
	}
}

// say writes one line to the parent. A line is one write: it arrives completely
// or not at all.
func say(words ...string) { os.Stdout.WriteString(strings.Join(words, " ") + "\n") }

// What a child says.
const (
	saysHas       = "has"       // there is a message
	saysReady     = "ready"     // that was all; from now on there is load
	saysSent      = "sent"      // a batch was acknowledged
	saysTrying    = "trying"    // to complete a message
	saysCompleted = "completed" // and that was acknowledged
)

// child lists what there is and then sends and receives until it is killed.
func child(ctx context.Context, dir, life string) error {
	n, err := open(ctx, vfs.OS(dir))
	if err != nil {
		return err
	}
	all, err := n.list(ctx)
	if err != nil {
		return err
	}
	for _, f := range all {
		say(saysHas, f.id)
	}
	say(saysReady)

	// This many messages may wait; receivers let senders continue.
	space := make(chan struct{}, 3000)
	for range min(len(all), cap(space)) {
		space <- struct{}{}
	}
	errs := make(chan error)
	for i := range 4 {
		go func() { errs <- n.send(fmt.Sprint(life, ".", i), space) }() // ends with the process
	}
	idle := rand.IntN(len(queues)) // has no receiver in this life, so that messages pile up
	for i := range queues {
		if i != idle {
			go func() { errs <- n.receive(ctx, queues[i], space) }() // ends with the process
		}
	}
	return <-errs
}

// send sends batches, one after the other.
func (n *node) send(name string, space chan struct{}) error {
	rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for k := 0; ; k++ {
		s, err := n.OpenSender(queues[rng.IntN(len(queues))], broker.SenderOptions{})
		if err != nil {
			return err
		}
		size := 1 + rng.IntN(4)
		var batch []*message.Message
		for i := range size {
			space <- struct{}{}
			batch = append(batch, compose(member(fmt.Sprint(name, ".", k), i, size), uint8(rng.IntN(10))))
		}
		answer := make(chan error, 1)
		s.Send(batch, func(err error) { answer <- err })
		if err := <-answer; err != nil {
			return err
		}
		say(saysSent, fmt.Sprint(name, ".", k), fmt.Sprint(size))
	}
}

// member is the id of a message in a batch.
func member(batch string, i, size int) string { return fmt.Sprintf("%s/%d/%d", batch, i, size) }

// receiver completes most deliveries, abandons some, and keeps some locked.
type receiver struct {
	ds chan []broker.Delivery // capacity: credit, so that the sink never blocks
}

func (r *receiver) Deliver(ds []broker.Delivery) { r.ds <- ds }
func (r *receiver) Drained()                     {}
func (r *receiver) Ended(error)                  {}

func (n *node) receive(ctx context.Context, name string, space chan struct{}) error {
	const credit = 50
	sink := &receiver{ds: make(chan []broker.Delivery, credit)}
	r, err := n.OpenReceiver(ctx, name, broker.ReceiverOptions{Sink: sink})
	if err != nil {
		return err
	}
	r.SetDeliveryLimit(credit)
	total := uint64(credit)
	for ds := range sink.ds {
		for i := range ds {
			if err := n.work(r, name, &ds[i], space); err != nil {
				return err
			}
		}
		total += uint64(len(ds))
		r.SetDeliveryLimit(total)
	}
	return nil
}

func (n *node) work(r *broker.Receiver, name string, d *broker.Delivery, space chan struct{}) error {
	f, err := read(name, d)
	if err != nil {
		return err
	}
	switch rand.IntN(20) {
	case 0:
		return nil // the lock runs out, or the process does
	case 1, 2, 3, 4:
		r.Settle([]queue.Token{d.Token}, broker.Outcome{Disposition: broker.Abandon}, func([]error) {})
		return nil
	}
	say(saysTrying, f.id)
	r.Settle([]queue.Token{d.Token}, broker.Outcome{Disposition: broker.Complete}, func(errs []error) {
		if errs == nil {
			say(saysCompleted, f.id)
			select {
			case <-space:
			default: // it was received before it was counted
			}
		}
	})
	return nil
}
