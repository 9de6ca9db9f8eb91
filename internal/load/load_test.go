// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/load"
	"github.com/triagemq/triagemq/triagetest"
)

func target(t *testing.T, b *triagetest.Broker) load.Target {
	t.Helper()
	to, err := load.ParseTarget(b.ConnectionString())
	if err != nil {
		t.Fatal(err)
	}
	return to
}

const oneQueue = "queues:\n- name: bench\n"

func TestInOutCountsEveryMessageOnce(t *testing.T) {
	b := triagetest.Start(t, oneQueue)
	for name, cfg := range map[string]load.Config{
		"plain":         {Senders: 2, Receivers: 2, Count: 2000, Window: 50, Credit: 30, Levels: 256},
		"batches":       {Senders: 2, Receivers: 1, Count: 2010, Batch: 25},
		"in pieces":     {Senders: 1, Receivers: 2, Count: 20, Size: 200_000, Credit: 3},
		"one at a time": {Senders: 1, Receivers: 1, Count: 50, Window: 1, Credit: 1},
		"with backlog":  {Senders: 2, Receivers: 2, Count: 500, Backlog: 700},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Target = target(t, b)
			r, err := load.Run(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if r.In.Messages != cfg.Count || r.Out.Messages != cfg.Count+cfg.Backlog || r.Latency.Count != cfg.Count {
				t.Errorf("%d in, %d out, %d measured, want %d, %d, %d", r.In.Messages, r.Out.Messages, r.Latency.Count,
					cfg.Count, cfg.Count+cfg.Backlog, cfg.Count)
			}
			if r.Missing+r.Foreign+r.Refused != 0 {
				t.Errorf("%d missing, %d foreign, %d refused, want none", r.Missing, r.Foreign, r.Refused)
			}
		})
	}
}

const oneHub = "hubs:\n- name: events\n  partitionCount: 3\n"

func TestEventsAreCountedOnce(t *testing.T) {
	for name, cfg := range map[string]load.Config{
		"batches":         {Senders: 2, Receivers: 2, Count: 5000},
		"single events":   {Senders: 2, Receivers: 3, Count: 500, Batch: 1, Credit: 7},
		"in pieces":       {Senders: 1, Receivers: 1, Count: 12, Size: 100_000, Batch: 4, Credit: 2},
		"with backlog":    {Senders: 1, Receivers: 2, Count: 1000, Backlog: 700},
		"at a rate":       {Senders: 2, Receivers: 1, Count: 1000, Batch: 10, Rate: 20_000},
		"readers to most": {Senders: 1, Receivers: 50, Count: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			b := triagetest.Start(t, oneHub)
			cfg.Target, cfg.Hub, cfg.Partitions = target(t, b), "events", 3
			r, err := load.Run(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if r.In.Messages != cfg.Count || r.Out.Messages != cfg.Count+cfg.Backlog || r.Latency.Count != cfg.Count {
				t.Errorf("%d in, %d out, %d measured, want %d, %d, %d", r.In.Messages, r.Out.Messages, r.Latency.Count,
					cfg.Count, cfg.Count+cfg.Backlog, cfg.Count)
			}
			if r.Missing+r.Foreign+r.Refused != 0 {
				t.Errorf("%d missing, %d foreign, %d refused, want none", r.Missing, r.Foreign, r.Refused)
			}
		})
	}
}

func TestReadersBehindAreNotMeasured(t *testing.T) {
	b := triagetest.Start(t, oneHub)
	r, err := load.Run(t.Context(), load.Config{Target: target(t, b), Hub: "events", Partitions: 3, Backlog: 3000, Count: 2000, Behind: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Out.Messages != 2000 || r.Latency.Count != 2000 || r.Missing != 0 || r.Behind > 5000 {
		t.Errorf("%d out, %d measured, %d missing, %d read behind, want 2000, 2000, 0 and at most 5000", r.Out.Messages, r.Latency.Count, r.Missing, r.Behind)
	}
}

func TestOtherRunsAreLeftOut(t *testing.T) {
	b := triagetest.Start(t, oneQueue)
	cfg := load.Config{Target: target(t, b), Mode: load.Send, Count: 100}
	if _, err := load.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	cfg.Mode = load.InOut
	r, err := load.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.Out.Messages != 100 || r.Foreign != 100 {
		t.Errorf("%d out, %d foreign, want 100 of each", r.Out.Messages, r.Foreign)
	}
}

func TestUrgentMessagesPassTheBacklog(t *testing.T) {
	b := triagetest.Start(t, oneQueue)
	r, err := load.Run(t.Context(), load.Config{Target: target(t, b), Backlog: 5000, Urgent: 20, Receivers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if r.Urgent.Count != 20 || r.Fill.Messages != 5000 {
		t.Errorf("%d urgent measured, %d filled, want 20 and 5000", r.Urgent.Count, r.Fill.Messages)
	}
}

func TestRefusals(t *testing.T) {
	b := triagetest.Start(t, oneQueue)
	to := target(t, b)
	outsider := to
	outsider.Password = "guessed"
	for name, c := range map[string]struct {
		cfg  load.Config
		want string
	}{
		"no such queue":  {load.Config{Target: to, Queue: "none"}, "amqp:not-found"},
		"no such queue ": {load.Config{Target: to, Queue: "none", Mode: load.Send}, "amqp:not-found"},
		"wrong key":      {load.Config{Target: outsider}, "rejected the login"},
		"nonsense":       {load.Config{Target: to, Levels: 300, Size: 3}, "outside 1..256"},
	} {
		_, err := load.Run(t.Context(), c.cfg)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]load.Target{
		"amqp://localhost":            {Address: "localhost:5672", Host: "localhost"},
		"amqps://me:secret@host:7000": {Address: "host:7000", Host: "host", TLS: true, User: "me", Password: "secret"},
		"Endpoint=sb://localhost;SharedAccessKeyName=root;SharedAccessKey=k=;UseDevelopmentEmulator=true": {
			Address: "localhost:5672", Host: "localhost", User: "root", Password: "k="},
		"Endpoint=sb://ns.example/;SharedAccessKeyName=root;SharedAccessKey=k": {
			Address: "ns.example:5671", Host: "ns.example", TLS: true, User: "root", Password: "k"},
	} {
		if got, err := load.ParseTarget(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "localhost", "http://localhost", "amqp://", "Endpoint=", "amqp://a:b@%zz"} {
		if got, err := load.ParseTarget(text); err == nil {
			t.Errorf("%q: %+v, want an error", text, got)
		} else if strings.Contains(err.Error(), "a:b") {
			t.Errorf("%q: the error shows the password: %v", text, err)
		}
	}
}

// A full queue refuses at once, while what it has accepted before still waits for the disk:
// the answers come in another order than the messages were sent.
func TestQueueThatFillsEndsTheRun(t *testing.T) {
	const full = "queues:\n- name: bench\n  maxSizeInMegabytes: 1\n"
	for name, cfg := range map[string]load.Config{
		"one by one": {Mode: load.Send, Senders: 3, Count: 40_000, Size: 32, Window: 100},
		"in batches": {Mode: load.Send, Senders: 3, Count: 40_000, Size: 32, Window: 20, Batch: 25},
	} {
		t.Run(name, func(t *testing.T) {
			b := triagetest.Start(t, full)
			cfg.Target = target(t, b)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := load.Run(ctx, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if r.In.Messages == 0 || r.Refused == 0 || r.In.Messages+r.Refused != cfg.Count {
				t.Errorf("%d accepted and %d refused, want %d in all and some of each", r.In.Messages, r.Refused, cfg.Count)
			}
			if !strings.Contains(r.Reason, "resource-limit-exceeded") {
				t.Errorf("the reason is %q, want that the queue is full", r.Reason)
			}
		})
	}
}
