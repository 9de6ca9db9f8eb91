// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/triagemq/triagemq/internal/access"
)

// Refusals counts the logins and tokens that were refused, and writes them to the log:
// one line in a minute for each network and name of a key, and so many lines in all,
// because unauthenticated peers decide how often they try.
type Refusals struct {
	log *slog.Logger

	mu     sync.Mutex
	counts map[string]uint64    // guarded by mu; by reason
	since  time.Time            // guarded by mu; when the minute began
	told   map[refused]struct{} // guarded by mu; in this minute
	untold int                  // guarded by mu; refusals since the last line that have none
}

const (
	refusalsEvery = time.Minute
	refusalLines  = 100 // in refusalsEvery
	shownKeyName  = 64  // characters of it; an unauthenticated peer chooses it
)

// refused is what is logged once in a minute.
type refused struct {
	from netip.Prefix
	key  string
}

// The reasons by which refusals are counted. They are labels of a metric and never
// change.
const (
	reasonSignature = "signature"
	reasonExpired   = "expired"
	reasonMalformed = "malformed"
	reasonOther     = "other"
)

func NewRefusals(log *slog.Logger) *Refusals {
	return &Refusals{log: log, told: map[refused]struct{}{},
		counts: map[string]uint64{reasonSignature: 0, reasonExpired: 0, reasonMalformed: 0, reasonOther: 0}}
}

func reasonOf(err error) string {
	switch {
	case errors.Is(err, access.ErrSignature):
		return reasonSignature
	case errors.Is(err, access.ErrExpired):
		return reasonExpired
	case errors.Is(err, access.ErrMalformed):
		return reasonMalformed
	}
	return reasonOther
}

// note counts a refusal, and writes it to the log if that was not done lately. key is
// the name that the peer gave for its key.
func (r *Refusals) note(now time.Time, peer net.Addr, key string, err error) {
	if len(key) > shownKeyName {
		key = key[:shownKeyName] + "…"
	}
	untold, tell := r.count(now, refused{networkOf(ipOf(peer)), key}, reasonOf(err))
	if !tell {
		return
	}
	attrs := []any{"peer", peer.String(), "key", key, "err", err}
	if untold > 0 {
		attrs = append(attrs, "untold", untold) // of which there was no line since the last one
	}
	r.log.Info("login refused", attrs...)
}

func (r *Refusals) count(now time.Time, who refused, reason string) (untold int, tell bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[reason]++
	if now.Sub(r.since) >= refusalsEvery {
		r.since = now
		clear(r.told)
	}
	if _, ok := r.told[who]; ok || len(r.told) >= refusalLines {
		r.untold++
		return 0, false
	}
	who.key = strings.Clone(who.key) // not to keep what it came in
	r.told[who] = struct{}{}
	untold, r.untold = r.untold, 0
	return untold, true
}

// Total returns how many there were since the start, by reason.
func (r *Refusals) Total() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string]uint64, len(r.counts))
	for reason, n := range r.counts {
		all[reason] = n
	}
	return all
}

// Authority is an [access.Authority] for one peer that records what it refuses.
type Authority struct {
	access.Authority
	refusals *Refusals
	peer     net.Addr
}

// Watch returns an authority that records in r what it refuses to a peer.
func (r *Refusals) Watch(a access.Authority, peer net.Addr) Authority {
	return Authority{a, r, peer}
}

// Verify implements access.Authority.
func (n Authority) Verify(token string, now time.Time) (access.Grant, error) {
	g, err := n.Authority.Verify(token, now)
	if err != nil {
		n.Refused(access.RuleOf(token), err)
	}
	return g, err
}

// VerifyJWT implements access.Authority.
func (n Authority) VerifyJWT(token string, now time.Time) (access.Grant, error) {
	g, err := n.Authority.VerifyJWT(token, now)
	if err != nil {
		n.Refused("(bearer token)", err)
	}
	return g, err
}

// Login implements access.Authority.
func (n Authority) Login(rule, key string) (access.Grant, error) {
	g, err := n.Authority.Login(rule, key)
	if err != nil {
		n.Refused(rule, err)
	}
	return g, err
}

// Certificate implements access.Authority.
func (n Authority) Certificate(name string) (access.Grant, error) {
	g, err := n.Authority.Certificate(name)
	if err != nil {
		n.Refused(name, err)
	}
	return g, err
}

// Refused notes a refusal that the Authority has not seen.
func (n Authority) Refused(rule string, err error) { n.refusals.note(time.Now(), n.peer, rule, err) }
