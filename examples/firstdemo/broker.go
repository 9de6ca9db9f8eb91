// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/shard"
	"github.com/triagemq/triagemq/internal/vfs"
)

const (
	queueName = "orders"
	enough    = 20 // acknowledged orders before the kill
)

// priorities are the names that a message may have, with their levels.
var priorities = []struct {
	name  string
	level queue.Level
}{{"critical", 9}, {"high", 7}, {"normal", 4}, {"low", 2}}

func nameOf(l queue.Level) string {
	for _, p := range priorities {
		if p.level == l {
			return p.name
		}
	}
	return fmt.Sprint("level ", l)
}

// node is a broker without a wire.
type node struct {
	*broker.Broker
	stop func()
}

// open starts a broker on a directory.
func open(ctx context.Context, dir string) (*node, error) {
	w, err := wal.Open(vfs.OS(dir), wal.Options{SegmentSize: 1 << 20})
	if err != nil {
		return nil, err
	}
	s, err := shard.Open(context.Background(), w, 0, shard.Options{})
	if err != nil {
		return nil, err
	}
	b, err := broker.Open([]*shard.Shard{s}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	upper, stopUpper := context.WithCancel(ctx)
	lower, stopLower := context.WithCancel(ctx)
	var up, low sync.WaitGroup
	up.Go(func() { b.Run(upper) })
	up.Go(func() { s.Run(upper) })
	low.Go(func() { w.Run(lower) })
	n := &node{b, func() {
		stopUpper()
		up.Wait()
		stopLower()
		low.Wait()
		w.Close() // everything is durable already: that is the point
	}}
	if _, err := b.CreateQueue(ctx, entity.Queue{Name: queueName}); err != nil && !errors.Is(err, broker.ErrExists) {
		n.stop()
		return nil, err
	}
	return n, nil
}

// fill sends orders until somebody kills it, and says which were acknowledged.
func fill(ctx context.Context, dir string, out io.Writer) error {
	n, err := open(ctx, dir)
	if err != nil {
		return err
	}
	defer n.stop()
	s, err := n.OpenSender(queueName, broker.SenderOptions{})
	if err != nil {
		return err
	}
	for i := 1; ; i++ {
		p := priorities[(i*7+i/3)%len(priorities)]
		text := fmt.Sprintf("order %d", i)
		d := message.Draft{
			Application: []message.Pair{{Name: "Priority", Value: codec.String(p.name)}},
			Body:        []byte(text),
		}
		answer := make(chan error, 1)
		s.Send([]*message.Message{d.Message()}, func(err error) { answer <- err })
		if err := <-answer; err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\t%s\n", p.name, text); err != nil {
			return err
		}
	}
}

// order is a message that was served.
type order struct{ priority, text string }

// drain completes everything that waits and returns it in the order it came.
func (n *node) drain(ctx context.Context) ([]order, error) {
	s := &sink{drained: make(chan error, 1)}
	r, err := n.OpenReceiver(ctx, queueName, broker.ReceiverOptions{Sink: s})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	r.Allow(1 << 20)
	r.Drain()
	if err := <-s.drained; err != nil {
		return nil, err
	}
	var served []order
	for i := range s.got {
		m, err := s.got[i].Message()
		if err != nil {
			return nil, err
		}
		o := order{priority: nameOf(s.got[i].Level)}
		for data := range m.Data() {
			o.text += string(data)
		}
		served = append(served, o)
		if err := n.Settle(ctx, queueName, []queue.Token{s.got[i].Token}, broker.Outcome{Verdict: broker.Complete}); err != nil {
			return nil, err
		}
	}
	return served, nil
}

// sink collects deliveries until there are no more.
type sink struct {
	got     []broker.Delivery
	drained chan error // capacity 1: the first of Drained and Ended
}

// Deliver implements broker.Sink.
func (s *sink) Deliver(ds []broker.Delivery) { s.got = append(s.got, ds...) }

// Drained implements broker.Sink.
func (s *sink) Drained() { s.end(nil) }

// Ended implements broker.Sink.
func (s *sink) Ended(err error) { s.end(err) }

func (s *sink) end(err error) {
	select {
	case s.drained <- err:
	default:
	}
}
