// SPDX-License-Identifier: Apache-2.0

package webhook

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
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/turns"
)

const (
	maxWaiting  = 64   // alerts of one target that wait; the oldest are dropped and logged
	maxTargets  = 1024 // that have alerts waiting; those of others are dropped and logged
	maxPosts    = 32   // under way at a time
	shareOfOne  = 8    // the part of the targets and posts that a queue, or a topic, may have
	postTimeout = 10 * time.Second
	maxTries    = 6 // with waits of 1, 2, 4, 8 and 16 s between them
	firstWait   = time.Second
	maxAnswer   = 16 << 10 // bytes that are read of an answer, and of its header
)

// Headers of a webhook. The signature is the HMAC-SHA256, under the policy's
// secret, of the timestamp, a dot and the body; who checks the time as well cannot
// be shown an old alert again.
const (
	headerTimestamp = "X-TriageMQ-Timestamp"
	headerSignature = "X-TriageMQ-Signature"
)

// target is whom alerts are sent to one after the other: the webhook of one
// entity. Entities that name the same webhook do not wait for each other.
type target struct{ entity, address string }

// owner returns the queue or topic of the entity: who may manage one topic can have the webhooks
// of its two thousand subscriptions answer slowly, and others are to hear of their alerts.
func (t target) owner() string { return entity.Owner(t.entity) }

// Sender sends alerts to where policies want them. Each target has a queue and a
// goroutine of its own while there is something to send to it, so that one that is
// slow delays no other.
type Sender struct {
	log    *slog.Logger
	client *http.Client
	wait   time.Duration // before the second try; doubled before each other

	posts *turns.Turns // for posts, which queues and topics take turns with
	begun chan target  // targets that need a goroutine; its capacity is enough for all of them

	mu      sync.Mutex
	waiting map[target][]broker.Alert // guarded by mu; a target that is in it has a goroutine, or will have
	targets map[string]int            // guarded by mu; how many of waiting a queue or topic has
}

// New returns a sender that reaches the public Internet and the networks given.
func New(log *slog.Logger, networks []netip.Prefix) *Sender {
	return &Sender{
		log: log, client: newClient(networks), wait: firstWait,
		posts:   turns.New(maxPosts, maxPosts/shareOfOne),
		begun:   make(chan target, maxTargets),
		waiting: map[target][]broker.Alert{},
		targets: map[string]int{},
	}
}

// Notify takes an alert if its policy has a webhook. It is called by shards
// and never waits.
func (h *Sender) Notify(a broker.Alert) {
	if a.Hook.Webhook == "" {
		return
	}
	if lost := h.add(a); lost != nil {
		h.log.Error("alert dropped: too many wait for their webhooks", "entity", lost.Entity, "class", lost.Class)
	}
}

// add queues an alert and returns the one that is dropped for it, nil for none. Of one
// target the latest say the most.
func (h *Sender) add(a broker.Alert) (lost *broker.Alert) {
	h.mu.Lock()
	defer h.mu.Unlock()
	to := target{a.Entity, a.Hook.Webhook}
	queue, running := h.waiting[to]
	switch {
	case !running && (len(h.waiting) >= maxTargets || h.targets[to.owner()] >= maxTargets/shareOfOne):
		return &a
	case len(queue) >= maxWaiting:
		lost = &queue[0]
		queue = append([]broker.Alert(nil), queue[1:]...)
	}
	h.waiting[to] = append(queue, a)
	if !running {
		h.targets[to.owner()]++
		h.begun <- to // each target of waiting is in it once at most
	}
	return lost
}

// next returns the next alert of a target; false means that there is none, and that
// the target is over.
func (h *Sender) next(to target) (broker.Alert, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	queue := h.waiting[to]
	if len(queue) == 0 {
		delete(h.waiting, to)
		if h.targets[to.owner()]--; h.targets[to.owner()] == 0 {
			delete(h.targets, to.owner())
		}
		return broker.Alert{}, false
	}
	h.waiting[to] = queue[1:]
	return queue[0], true
}

// Run sends alerts until ctx ends.
func (h *Sender) Run(ctx context.Context) error {
	var targets sync.WaitGroup
	defer targets.Wait()
	for {
		select {
		case to := <-h.begun:
			targets.Go(func() { h.serve(ctx, to) })
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// serve sends the alerts of one target, until none are left.
func (h *Sender) serve(ctx context.Context, to target) {
	for ctx.Err() == nil {
		a, ok := h.next(to)
		if !ok {
			return
		}
		if err := h.deliver(ctx, a); err != nil && ctx.Err() == nil {
			h.log.Error("alert not delivered to its webhook", "entity", a.Entity, "class", a.Class, "err", err)
		}
	}
}

// deliver tries until the alert is taken, refused permanently, or tried often enough.
func (h *Sender) deliver(ctx context.Context, a broker.Alert) error {
	wait := h.wait
	for try := 1; ; try++ {
		again, err := h.post(ctx, a)
		if err == nil || !again || try == maxTries {
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
func (h *Sender) post(ctx context.Context, a broker.Alert) (again bool, err error) {
	leave, err := h.posts.Take(ctx, entity.Owner(a.Entity))
	if err != nil {
		return false, err
	}
	defer leave()
	body := a.Body()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.Hook.Webhook, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(headerTimestamp, stamp)
	if a.Hook.Secret != "" {
		req.Header.Set(headerSignature, sign(a.Hook.Secret, stamp, body))
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return !isDenied(err), err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // so that the connection can be used again
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
