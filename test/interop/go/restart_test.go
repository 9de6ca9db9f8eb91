// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/triagemq/triagemq/test/interop/go/running"
)

// patient retries often enough to outlast a restart.
func patient(t *testing.T, b *running.Broker) *azservicebus.Client {
	t.Helper()
	return connectWith(t, b.Connection(), &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: 100, RetryDelay: 50 * time.Millisecond, MaxRetryDelay: 500 * time.Millisecond},
	})
}

func TestReconnectAfterRestart(t *testing.T) {
	t.Parallel()
	b := running.StartBroker(t, entities)
	q := openOn(t, patient(t, b), "restart")
	q.send("before-1", "before-2")
	q.one() // the crash drops its lock

	waiting := make(chan string, 1) // a receiver that waits through the restart
	other := openOn(t, patient(t, b), "site/nested")
	go func() {
		ms, err := other.ReceiveMessages(other.ctx, 1, nil)
		waiting <- fmt.Sprint(bodies(ms), " ", err)
	}()

	b.Kill()
	if err := b.Restart(); err != nil {
		t.Fatal(err)
	}
	q.send("after")
	ms := q.receive(3)
	if got := bodies(ms); got != "before-1 before-2 after" {
		t.Errorf("received %q, want \"before-1 before-2 after\"", got)
	}
	q.complete(ms...)

	late := openOn(t, patient(t, b), "site/nested")
	late.send("awaited")
	if got := <-waiting; got != "awaited <nil>" {
		t.Errorf("the waiting receiver got %s, want \"awaited\"", got)
	}
}

// The broker is stopped cleanly and started again and again while senders send.
// They continue without an error, and every acknowledged message exists.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	const senders, stops = 4, 3
	b := running.StartBroker(t, entities)
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	loading, stop := context.WithCancel(ctx)
	var mu sync.Mutex
	acked := map[string]bool{}
	progress := make([]chan struct{}, senders)
	var wg sync.WaitGroup
	for s := range senders {
		progress[s] = make(chan struct{}, 1)
		sender, err := patient(t, b).NewSender("load", nil)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for n := 0; loading.Err() == nil; n++ {
				body := fmt.Sprintf("%d/%d", s, n)
				if err := sender.SendMessage(ctx, &azservicebus.Message{Body: []byte(body)}, nil); err != nil {
					t.Errorf("sender %d: %v", s, err)
					return
				}
				mu.Lock()
				acked[body] = true
				mu.Unlock()
				select {
				case progress[s] <- struct{}{}:
				default:
				}
			}
		})
	}
	goOn := func() {
		for _, p := range progress {
			for range 2 { // one may be from before
				select {
				case <-p:
				case <-ctx.Done():
					t.Fatal("a sender hangs")
				}
			}
		}
	}
	for range stops {
		goOn()
		b.Stop()
		if err := b.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	goOn()
	stop()
	wg.Wait()
	r, err := patient(t, b).NewReceiverForQueue("load", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	if err != nil {
		t.Fatal(err)
	}
	for len(acked) > 0 {
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		ms, err := r.ReceiveMessages(short, 500, nil)
		cancel()
		if err != nil {
			t.Fatalf("%d acknowledged messages did not come back: %v", len(acked), err)
		}
		for _, m := range ms {
			delete(acked, string(m.Body))
		}
	}
}

// The broker is killed again and again while senders send. Every acknowledged
// message exists after that, in each sender's order.
func TestKillUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	const senders, kills = 4, 3
	b := running.StartBroker(t, entities)
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	loading, stop := context.WithCancel(ctx)

	acked := make([]int, senders) // each sender numbers its messages from 0
	var wg sync.WaitGroup
	for s := range senders {
		sender, err := patient(t, b).NewSender("load", nil)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for loading.Err() == nil {
				m := &azservicebus.Message{Body: fmt.Appendf(nil, "%d/%d", s, acked[s])}
				if err := sender.SendMessage(ctx, m, nil); err != nil {
					t.Errorf("sender %d: %v", s, err)
					return
				}
				acked[s]++
			}
		})
	}
	tick := time.NewTicker(700 * time.Millisecond)
	defer tick.Stop()
	for range kills {
		<-tick.C
		b.Kill()
		if err := b.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	<-tick.C
	stop()
	wg.Wait()

	// A retried send may have been stored twice; a skipped number is a loss.
	r, err := patient(t, b).NewReceiverForQueue("load", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	if err != nil {
		t.Fatal(err)
	}
	next := make([]int, senders)
	missing := func() (n int) {
		for s := range senders {
			n += acked[s] - next[s]
		}
		return n
	}
	for missing() > 0 {
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		ms, err := r.ReceiveMessages(short, 500, nil)
		cancel()
		if err != nil {
			t.Fatalf("%d acknowledged messages did not come back: %v (sent %v, received up to %v)", missing(), err, acked, next)
		}
		for _, m := range ms {
			var s, n int
			if _, err := fmt.Sscanf(string(m.Body), "%d/%d", &s, &n); err != nil {
				t.Fatalf("received %q", m.Body)
			}
			if n > next[s] {
				t.Fatalf("sender %d: message %d arrived before %d", s, n, next[s])
			}
			if n == next[s] {
				next[s]++
			}
		}
	}
	t.Logf("%d kills, acknowledged and received: %v", kills, acked)
}
