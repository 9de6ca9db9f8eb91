// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/monitor"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// benchSubscriptions is how many subscriptions the topics of benchmarks have, of
// which one takes the message.
const benchSubscriptions = 100

// benchFilters are rules that a hash table finds, by one property or by several,
// and rules that have to be evaluated one by one. The last of each is the one
// that takes benchMessage.
var benchFilters = []struct {
	name   string
	filter func(i int) entity.Filter
}{
	{"correlation", func(i int) entity.Filter {
		region, _ := entity.NewValue(fmt.Sprint("region-", i)) // a string is a value
		return entity.Filter{Kind: entity.CorrelationFilter, Correlation: &entity.Correlation{
			Label: "order.created", Properties: map[string]entity.Value{"region": region},
		}}
	}},
	{"equality", func(i int) entity.Filter {
		return entity.Filter{Kind: entity.SQLFilter, SQL: fmt.Sprintf("region = 'region-%d' AND amount > 10", i)}
	}},
	{"range", func(i int) entity.Filter {
		return entity.Filter{Kind: entity.SQLFilter, SQL: fmt.Sprintf("amount > %d AND amount <= %d", 10*i, 10*i+10)}
	}},
}

func benchMessage() *message.Message {
	d := message.Draft{
		MessageID: codec.String("order-4711"), Subject: "order.created",
		Application: []message.Pair{
			{Name: "Priority", Value: codec.String("High")},
			{Name: "tenant", Value: codec.String("contoso")},
			{Name: "region", Value: codec.String(fmt.Sprint("region-", benchSubscriptions-1))},
			{Name: "amount", Value: codec.Int(10 * benchSubscriptions)},
		},
		Body: make([]byte, 256),
	}
	return d.Message()
}

// benchBroker runs a broker of one shard, so that queues and topics share it, with
// a queue "queue" and a topic for each of benchFilters.
func benchBroker(b *testing.B, disk vfs.FS) *Broker {
	b.Helper()
	w, err := wal.Open(disk, wal.Options{})
	if err != nil {
		b.Fatalf("open the journal: %v", err)
	}
	s, err := queueserver.Open(context.Background(), w, 0, queueserver.Options{NewMonitor: monitor.New(slog.New(slog.DiscardHandler))})
	if err != nil {
		b.Fatalf("open the shard: %v", err)
	}
	br, err := Open([]*queueserver.Shard{s}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatalf("open the broker: %v", err)
	}
	top, stopTop := context.WithCancel(context.WithoutCancel(b.Context()))
	low, stopLow := context.WithCancel(context.WithoutCancel(b.Context()))
	var upper, lower sync.WaitGroup
	upper.Go(func() { br.Run(top) })
	upper.Go(func() { s.Run(top) })
	lower.Go(func() { w.Run(low) })
	b.Cleanup(func() {
		stopTop()
		upper.Wait()
		stopLow()
		lower.Wait()
		if err := w.Close(); err != nil {
			b.Errorf("close the journal: %v", err)
		}
	})
	if _, err := br.CreateQueue(b.Context(), entity.Queue{Name: "queue"}); err != nil {
		b.Fatalf("create the queue: %v", err)
	}
	for _, f := range benchFilters {
		if _, err := br.CreateTopic(b.Context(), entity.Topic{Name: f.name}); err != nil {
			b.Fatalf("create topic %q: %v", f.name, err)
		}
		for i := range benchSubscriptions {
			sub := entity.Subscription{Name: fmt.Sprint("s", i), Rules: []entity.Rule{{Name: "r", Filter: f.filter(i)}}}
			if _, err := br.CreateSubscription(b.Context(), f.name, sub); err != nil {
				b.Fatalf("create subscription %q: %v", sub.Name, err)
			}
		}
	}
	return br
}

// publisher sends to one entity and keeps what it took.
type publisher struct {
	name   string
	sender *Sender
	took   []float64 // nanoseconds for each message, one for each round
}

// round sends n messages, one in each transfer as most clients do, and waits until
// all are durable. Each is parsed anew, as it is when it comes from a connection.
func (p *publisher) round(b *testing.B, raw []byte, n int) {
	var left sync.WaitGroup
	left.Add(n)
	done := func(err error) {
		if err != nil {
			b.Errorf("send to %s: %v", p.name, err)
		}
		left.Done()
	}
	start := time.Now()
	for range n {
		m, err := message.Parse(raw)
		if err != nil {
			b.Fatal(err)
		}
		p.sender.Send([]*message.Message{m}, done)
	}
	left.Wait()
	p.took = append(p.took, float64(time.Since(start).Nanoseconds())/float64(n))
}

// undisturbed returns the tenth percentile of the rounds: on a machine that others
// use too, the mean tells more of them than of us.
func (p *publisher) undisturbed() float64 {
	slices.Sort(p.took)
	return p.took[len(p.took)/10]
}

// BenchmarkPublish compares publishing to topics with sending to a queue. They
// take turns within one run; x/ is how much longer a topic takes.
func BenchmarkPublish(b *testing.B) {
	for _, disk := range []struct {
		name string
		fs   func(b *testing.B) vfs.FS
	}{
		{"memory", func(*testing.B) vfs.FS { return vfs.NewMem() }},
		{"disk", func(b *testing.B) vfs.FS { return vfs.OS(b.TempDir()) }},
	} {
		b.Run(disk.name, func(b *testing.B) {
			br := benchBroker(b, disk.fs(b))
			all := make([]*publisher, 0, 1+len(benchFilters))
			for _, addr := range append([]string{"queue"}, filterNames()...) {
				s, err := br.OpenSender(addr, SenderOptions{})
				if err != nil {
					b.Fatal(err)
				}
				all = append(all, &publisher{name: addr, sender: s})
			}
			const n = 200
			raw := benchMessage().Bytes()
			for b.Loop() {
				for _, p := range all {
					p.round(b, raw, n)
				}
			}
			queue := all[0].undisturbed()
			b.ReportMetric(0, "ns/op") // a loop is a round of every publisher
			b.ReportMetric(queue, "ns/queue")
			for _, p := range all[1:] {
				b.ReportMetric(p.undisturbed()/queue, "x/"+p.name)
			}
		})
	}
}

func filterNames() []string {
	names := make([]string, len(benchFilters))
	for i, f := range benchFilters {
		names[i] = f.name
	}
	return names
}
