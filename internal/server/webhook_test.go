// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/policy"
)

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
	h := newWebhooks(slog.New(slog.DiscardHandler))
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
	h := newWebhooks(slog.New(slog.DiscardHandler))
	if err := h.deliver(t.Context(), broker.Alert{Hook: policy.Alerts{Webhook: listener.URL}}); err == nil || n != 1 {
		t.Errorf("tried %d times, error %v; want once and an error", n, err)
	}
}

func TestFullWebhookQueueDropsAlertsAndBlocksNobody(t *testing.T) {
	h := newWebhooks(slog.New(slog.DiscardHandler))
	for range webhookQueue + 1 {
		h.notify(broker.Alert{Hook: policy.Alerts{Webhook: "http://example.com"}})
	}
	h.notify(broker.Alert{}) // has nobody to tell
	if len(h.queue) != webhookQueue {
		t.Errorf("%d wait, want %d", len(h.queue), webhookQueue)
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
		"topics[0].subscriptions[0].policy.aging.upTo: missing",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in\n%v", part, err)
		}
	}
}
