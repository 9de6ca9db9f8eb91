// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// Defaults of a processor.
const (
	defaultGroup    = "$Default"
	defaultBatch    = 100
	defaultPrefetch = 64 << 20 // bytes
	defaultAttempts = 3
	defaultCoolDown = time.Minute
	defaultGrace    = 30 * time.Second
	defaultInterval = 10 * time.Second
	coalesce        = time.Second // of EveryBatch
	maxName         = 256         // bytes, as the broker has it
)

var defaultRetry = Backoff(100*time.Millisecond, 10*time.Second)

// settings are those of a processor, checked and with their defaults.
type settings struct {
	id, name      string
	namespace     string
	hub           string
	group         string
	keep          time.Duration
	batch         int
	prefetch      int
	prefetchBytes int
	attempts      int
	retry         func(int) time.Duration
	coolDown      time.Duration
	grace         time.Duration
	timeout       time.Duration
	interval      time.Duration
	expiry        time.Duration
	policy        CheckpointPolicy
	log           *slog.Logger
}

// checked returns the settings, or every fault at once.
func (p *Processor) checked() (settings, error) {
	s := settings{
		id: cmp.Or(p.ID, rand.Text()), name: p.Name, hub: p.Hub, group: cmp.Or(p.Group, defaultGroup),
		keep: p.Keep, batch: p.Batch, attempts: cmp.Or(p.Attempts, defaultAttempts), retry: p.Retry,
		coolDown: cmp.Or(p.CoolDown, defaultCoolDown), grace: cmp.Or(p.Grace, defaultGrace), timeout: p.Timeout,
		interval: cmp.Or(p.Interval, defaultInterval), policy: p.Checkpoint,
		log: cmp.Or(p.Log, slog.Default()),
	}
	if s.name == "" {
		s.name, _ = os.Hostname() // only shown
	}
	s.expiry = cmp.Or(p.Expiry, 6*s.interval)
	if s.batch == 0 {
		s.batch = defaultBatch
		if s.policy == EveryEvent() {
			s.batch = 1
		}
	}
	s.prefetch = cmp.Or(p.Prefetch, 10*s.batch)
	s.prefetchBytes = cmp.Or(p.PrefetchBytes, defaultPrefetch)
	switch s.policy.kind {
	case everySecond:
		s.policy.every = coalesce
	}
	if s.retry == nil {
		s.retry = defaultRetry
	}
	if p.Client != nil {
		s.namespace = p.Client.Namespace()
		s.hub = cmp.Or(s.hub, p.Client.Entity())
	}
	if err := p.faults(s); err != nil {
		return s, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	s.log = s.log.With("hub", s.hub, "group", s.group, "processor", s.id)
	return s, nil
}

// faults returns all that is wrong with the settings.
func (p *Processor) faults(s settings) error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(p.Client == nil && p.link == nil, "Client is missing")
	fault(p.Handle == nil, "Handle is missing")
	fault(s.hub == "" && (p.Client != nil || p.link != nil), "Hub is missing, and the client's address names no entity")
	fault(len(s.id) > maxName, "ID has %d bytes, want at most %d", len(s.id), maxName)
	fault(len(s.name) > maxName, "Name has %d bytes, want at most %d", len(s.name), maxName)
	fault(p.Keep > 0 && p.ID == "", "Keep needs an ID that stays the same")
	fault(p.Keep > 0 && p.Store != nil, "Keep is for a processor without Store")
	fault(p.Strategy > Greedy, "Strategy is %d, which is none", p.Strategy)
	fault(p.AtGap > StandStill, "AtGap is %d, which is none", p.AtGap)
	for _, n := range []struct {
		name  string
		value int
	}{{"Batch", p.Batch}, {"Prefetch", p.Prefetch}, {"PrefetchBytes", p.PrefetchBytes}, {"Attempts", p.Attempts}} {
		fault(n.value < 0, "%s is %d, want at least 0", n.name, n.value)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Keep", p.Keep}, {"Interval", p.Interval}, {"Expiry", p.Expiry}, {"Timeout", p.Timeout}, {"CoolDown", p.CoolDown}, {"Grace", p.Grace}} {
		fault(d.value < 0, "%s is %v, want at least 0", d.name, d.value)
	}
	fault(p.Store == nil && (p.Interval != 0 || p.Expiry != 0 || p.Strategy != Balanced), "Strategy, Interval and Expiry need a Store")
	fault(p.Interval >= 0 && p.Expiry >= 0 && s.expiry < 2*s.interval, "Expiry is %v, want at least twice the Interval of %v", s.expiry, s.interval)
	fault(s.policy.kind == everyCount && s.policy.count < 1, "Checkpoint: EveryN(%d), want at least 1", s.policy.count)
	fault(s.policy.kind == everyTime && s.policy.every <= 0, "Checkpoint: Every(%v), want more than 0", s.policy.every)
	fault(s.policy == EveryEvent() && p.Batch > 1, "Checkpoint: EveryEvent() needs a Batch of 1, this is %d", p.Batch)
	for _, at := range append([]Position{p.Start}, values(p.StartOf)...) {
		fault(at.kind == bySequence && at.after < -1, "Start: sequence number %d is negative", at.after+1)
	}
	return errors.Join(errs...)
}

func values(m map[string]Position) []Position {
	out := make([]Position, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	return out
}
