// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/policy"
)

// loopback is where the webhooks of tests are.
var loopback = prefixes("127.0.0.0/8 ::1/128")

func TestWebhookIsSignedAndTriedAgain(t *testing.T) {
	answers := []int{http.StatusServiceUnavailable, http.StatusNoContent}
	var bodies []string
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		want := sign("secret", r.Header.Get(headerTimestamp), body)
		if got := r.Header.Get(headerSignature); got != want || !strings.HasPrefix(got, "sha256=") {
			t.Errorf("signature %q, want %q", got, want)
		}
		bodies = append(bodies, string(body))
		w.WriteHeader(answers[len(bodies)-1])
	}))
	defer listener.Close()
	h := New(slog.New(slog.DiscardHandler), loopback)
	h.wait = 1
	a := broker.Alert{Entity: "orders", Class: "paid", To: objective.Missed, Hook: policy.Alerts{Webhook: listener.URL, Secret: "secret"}}
	if err := h.deliver(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if len(bodies) != 2 || strings.Contains(bodies[0], "secret") {
		t.Fatalf("sent %q, want the alert twice and no secret", bodies)
	}
	var told struct{ Entity, Class, To string }
	if err := json.Unmarshal([]byte(bodies[0]), &told); err != nil || told.Entity != "orders" || told.To != "missed" {
		t.Errorf("sent %s", bodies[0])
	}
}

func TestWebhookThatRefusesIsNotTriedAgain(t *testing.T) {
	n := 0
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		w.WriteHeader(http.StatusNotFound)
	}))
	defer listener.Close()
	h := New(slog.New(slog.DiscardHandler), loopback)
	if err := h.deliver(t.Context(), broker.Alert{Hook: policy.Alerts{Webhook: listener.URL}}); err == nil || n != 1 {
		t.Errorf("tried %d times, error %v; want once and an error", n, err)
	}
}

// Neither many alerts of one target nor many targets
// take more than their space, and nobody waits for it.
func TestFullWebhookQueueDropsAlertsAndBlocksNobody(t *testing.T) {
	h := New(slog.New(slog.DiscardHandler), nil)
	for i := range maxWaiting + 3 {
		h.Notify(broker.Alert{Entity: "q", Class: fmt.Sprint(i), Hook: policy.Alerts{Webhook: "http://example.com"}})
	}
	h.Notify(broker.Alert{}) // has nobody to tell
	to := target{"q", "http://example.com"}
	if queue := h.waiting[to]; len(queue) != maxWaiting || queue[0].Class != "3" {
		t.Errorf("%d wait, the first of them %q; want the last %d", len(queue), queue[0].Class, maxWaiting)
	}
	for i := range maxTargets + 3 {
		h.Notify(broker.Alert{Entity: fmt.Sprint("q", i), Hook: policy.Alerts{Webhook: "http://example.com"}})
	}
	if n := len(h.waiting); n != maxTargets {
		t.Errorf("%d targets, want %d", n, maxTargets)
	}
}

// One topic whose webhooks do not answer leaves space for the alerts of others, and posts.
func TestManyWebhooksOfATopicHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(slog.New(slog.DiscardHandler), nil)
		var told atomic.Int64
		h.client.Transport = transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "tarpit.example" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			told.Add(1)
			return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- h.Run(ctx) }()
		for i := range 2 * maxTargets {
			h.Notify(broker.Alert{Entity: fmt.Sprint("noisy/Subscriptions/s", i), Hook: policy.Alerts{Webhook: "https://tarpit.example/"}})
		}
		synctest.Wait()
		h.Notify(broker.Alert{Entity: "quiet", Hook: policy.Alerts{Webhook: "https://operator.example/"}})
		synctest.Wait()
		if told.Load() != 1 {
			t.Errorf("%d alerts of the other queue were delivered at once, want 1", told.Load())
		}
		stop()
		<-done
	})
}

// transport answers requests without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Number 20: a target that does not answer holds up nobody else, be it at the same
// address.
func TestSlowWebhookHoldsUpNobody(t *testing.T) {
	answer, told := make(chan struct{}), make(chan string, 200)
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var a struct{ Entity string }
		_ = json.Unmarshal(body, &a)
		if a.Entity == "slow" {
			select {
			case <-answer:
			case <-r.Context().Done():
			}
		}
		told <- a.Entity
	}))
	defer listener.Close()
	h := New(slog.New(slog.DiscardHandler), loopback)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	hook := policy.Alerts{Webhook: listener.URL}
	for range maxWaiting {
		h.Notify(broker.Alert{Entity: "slow", Hook: hook})
	}
	for i := range 10 {
		h.Notify(broker.Alert{Entity: fmt.Sprint("quick", i), Hook: hook})
	}
	for range 10 {
		if who := <-told; who == "slow" {
			t.Fatal("the slow one was not slow")
		}
	}
	close(answer)
	for range maxWaiting {
		<-told
	}
	targets := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.waiting)
	}
	for targets() > 0 { // the test's own time limit ends it
		runtime.Gosched()
	}
	stop()
	<-done
}

// Number 20: a client that may write a policy must not reach through us what it cannot
// reach itself. What a name means is looked at when the connection is made.
func TestWebhookStaysOnThePublicInternet(t *testing.T) {
	reached := 0
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer inside.Close()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(inside.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	h := New(slog.New(slog.DiscardHandler), nil)
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"} {
		err := h.deliver(t.Context(), broker.Alert{Hook: policy.Alerts{Webhook: "http://" + host + ":" + port}})
		if _, denied := errors.AsType[*deniedError](err); !denied {
			t.Errorf("%s: %v, want it denied, and at once", host, err)
		}
	}
	if reached > 0 {
		t.Errorf("the inside was reached %d times", reached)
	}
	redirect := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusTemporaryRedirect))
	defer redirect.Close()
	h = New(slog.New(slog.DiscardHandler), loopback)
	if err := h.deliver(t.Context(), broker.Alert{Hook: policy.Alerts{Webhook: redirect.URL}}); err == nil || reached > 0 {
		t.Errorf("a redirect was followed: %v", err)
	}
}

func TestPublicAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true, "64:ff9b::8.8.8.8": true, "172.32.0.1": true,
		"127.0.0.1": false, "127.255.255.254": false, "10.1.2.3": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "100.127.255.255": false, "0.0.0.0": false, "0.1.2.3": false, "224.0.0.1": false,
		"255.255.255.255": false, "240.0.0.1": false, "198.18.0.1": false, "192.0.0.8": false, "192.0.2.1": false,
		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd12::1": false, "fec0::1": false, "ff02::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::127.0.0.1": false, "64:ff9b::10.0.0.1": false, "64:ff9b::127.0.0.1": false,
		"64:ff9b:1::8.8.8.8": false, "2002:7f00:1::": false, "2001:0:1::1": false, "2001:db8::1": false, "100::1": false,
	} {
		if got := isPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is public: %v, want %v", text, got, want)
		}
	}
}
