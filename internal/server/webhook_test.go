// SPDX-License-Identifier: Apache-2.0

package server

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
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/config"
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
	h := newWebhooks(slog.New(slog.DiscardHandler), loopback)
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
	h := newWebhooks(slog.New(slog.DiscardHandler), loopback)
	if err := h.deliver(t.Context(), broker.Alert{Hook: policy.Alerts{Webhook: listener.URL}}); err == nil || n != 1 {
		t.Errorf("tried %d times, error %v; want once and an error", n, err)
	}
}

// Number 20 of the list of doors: neither many alerts of one target nor many targets
// take more than their room, and nobody waits for it.
func TestFullWebhookQueueDropsAlertsAndBlocksNobody(t *testing.T) {
	h := newWebhooks(slog.New(slog.DiscardHandler), nil)
	for i := range webhookQueue + 3 {
		h.notify(broker.Alert{Entity: "q", Class: fmt.Sprint(i), Hook: policy.Alerts{Webhook: "http://example.com"}})
	}
	h.notify(broker.Alert{}) // has nobody to tell
	to := hookTarget{"q", "http://example.com"}
	if queue := h.waiting[to]; len(queue) != webhookQueue || queue[0].Class != "3" {
		t.Errorf("%d wait, the first of them %q; want the last %d", len(queue), queue[0].Class, webhookQueue)
	}
	for i := range webhookTargets + 3 {
		h.notify(broker.Alert{Entity: fmt.Sprint("q", i), Hook: policy.Alerts{Webhook: "http://example.com"}})
	}
	if n := len(h.waiting); n != webhookTargets {
		t.Errorf("%d targets, want %d", n, webhookTargets)
	}
}

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
	h := newWebhooks(slog.New(slog.DiscardHandler), loopback)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.run(ctx) }()
	hook := policy.Alerts{Webhook: listener.URL}
	for range webhookQueue {
		h.notify(broker.Alert{Entity: "slow", Hook: hook})
	}
	for i := range 10 {
		h.notify(broker.Alert{Entity: fmt.Sprint("quick", i), Hook: hook})
	}
	for range 10 {
		if who := <-told; who == "slow" {
			t.Fatal("the slow one was not slow")
		}
	}
	close(answer)
	for range webhookQueue {
		<-told
	}
	eventually(t, "no target is left", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.waiting) == 0
	})
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
	h := newWebhooks(slog.New(slog.DiscardHandler), nil)
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
	h = newWebhooks(slog.New(slog.DiscardHandler), loopback)
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

func TestPolicyFaultsAreTheirPlacesInTheFile(t *testing.T) {
	cfg, err := config.Parse([]byte(`queues:
  - name: orders
    policy:
      discipline: magic
      classes:
        - {name: a, level: 8, when: "plan ="}
topics:
  - name: t
    subscriptions:
      - name: s
        policy: {aging: {every: 1m}, discipline: aging}
`))
	if err != nil {
		t.Fatal(err)
	}
	err = Config{Config: cfg}.Validate()
	if err == nil {
		t.Fatal("no fault was found")
	}
	for _, part := range []string{
		":4:19: queues[0].policy.discipline: ", ":6:", "queues[0].policy.classes[0].when: ",
		"topics[0].subscriptions[0].policy.aging.maxLevel: missing",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in\n%v", part, err)
		}
	}
}
