// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/triagemq/triagemq/internal/broker"
)

const (
	webhookQueue   = 256 // alerts that wait to be sent; more are dropped and logged
	webhookTimeout = 10 * time.Second
	webhookTries   = 6 // with waits of 1, 2, 4, 8 and 16 s between them
	webhookWait    = time.Second
)

// Headers of a webhook. The signature is the HMAC-SHA256, under the policy's
// secret, of the timestamp, a dot and the body; who checks the time as well cannot
// be shown an old alert again.
const (
	headerTimestamp = "X-TriageMQ-Timestamp"
	headerSignature = "X-TriageMQ-Signature"
)

// webhooks sends alerts to where policies want them.
type webhooks struct {
	log    *slog.Logger
	client *http.Client
	wait   time.Duration     // before the second try; doubled before each other
	queue  chan broker.Alert // capacity webhookQueue, so that no shard waits for a slow listener
}

func newWebhooks(log *slog.Logger) *webhooks {
	return &webhooks{
		log: log, client: &http.Client{Timeout: webhookTimeout}, wait: webhookWait,
		queue: make(chan broker.Alert, webhookQueue),
	}
}

// notify takes an alert if its policy names somebody to tell.
func (h *webhooks) notify(a broker.Alert) {
	if a.Hook.Webhook == "" {
		return
	}
	select {
	case h.queue <- a:
	default:
		h.log.Error("alert dropped: too many wait for their webhooks", "entity", a.Entity, "class", a.Class)
	}
}

// run sends alerts, one after the other, until ctx ends.
func (h *webhooks) run(ctx context.Context) error {
	for {
		select {
		case a := <-h.queue:
			if err := h.deliver(ctx, a); err != nil && ctx.Err() == nil {
				h.log.Error("alert not delivered to its webhook", "entity", a.Entity, "class", a.Class, "err", err)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// deliver tries until the alert is taken, refused for good, or tried often enough.
func (h *webhooks) deliver(ctx context.Context, a broker.Alert) error {
	wait := h.wait
	for try := 1; ; try++ {
		again, err := h.post(ctx, a, time.Now())
		if err == nil || !again || try == webhookTries {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		wait *= 2
	}
}

// post sends an alert once and reports whether it may help to try again.
func (h *webhooks) post(ctx context.Context, a broker.Alert, now time.Time) (again bool, err error) {
	body := a.Body()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.Hook.Webhook, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	stamp := strconv.FormatInt(now.Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(headerTimestamp, stamp)
	if a.Hook.Secret != "" {
		req.Header.Set(headerSignature, sign(a.Hook.Secret, stamp, body))
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return true, err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	switch {
	case resp.StatusCode < 300:
		return false, nil
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500:
		return true, fmt.Errorf("the webhook answered %s", resp.Status)
	}
	return false, fmt.Errorf("the webhook answered %s", resp.Status)
}

func sign(secret, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
