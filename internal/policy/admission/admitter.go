// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/policy"
)

// AdmitRequest is one message to be admitted.
type AdmitRequest struct {
	policy.Classification
	Bytes int64
}

// Decision is the answer for a batch. Without a refusal the batch is admitted,
// after the evictions, if there are any.
type Decision struct {
	Refusal *Refusal
	Evict   []Eviction
}

// OK reports whether the batch is admitted.
func (d Decision) OK() bool { return d.Refusal == nil }

// Refusal says which class was rejected, why and for how long.
type Refusal struct {
	Number     uint8  // of the class; zero for messages in none
	Class      string // empty for messages in none
	Reason     string
	RetryAfter time.Duration
}

// Eviction is what must be removed first: the oldest ready messages of a class, until
// at least Count of them and at least Bytes are removed.
type Eviction struct {
	Class uint8
	policy.Depth
}

// Admitter admits messages to a queue or rejects them. It belongs to one goroutine
// at a time. Its memory is that of the classes and of the fair keys whose rate
// was used recently.
type Admitter struct {
	policy  *policy.Policy
	classes []*bucket              // by class number; nil has no rate
	keys    map[string]*bucket     // those that are not full
	shares  map[string]policy.Rate // of the keys that the policy names
	sweepAt int                    // number of keys at which those with full buckets are dropped
	limited bool                   // there are limits of depth

	claims []claim // of the batch that is being checked
	batch  batch
}

// claim is how much a batch needs of one rate.
type claim struct {
	*bucket
	class uint8 // of the first message that needs it
	key   string
	keyed bool // the rate is that of the key
}

// leastSweep is the number of keys from which on those with full buckets are dropped.
const leastSweep = 64

// NewAdmitter returns the admitter of a policy.
func NewAdmitter(p *policy.Policy) *Admitter {
	g := &Admitter{keys: map[string]*bucket{}, sweepAt: leastSweep}
	g.Replace(p)
	return g
}

// Replace changes the policy. A rate that stays the same keeps what was used of it.
func (g *Admitter) Replace(p *policy.Policy) {
	old, oldPolicy := g.classes, g.policy
	g.policy = p
	g.classes = make([]*bucket, len(p.Classes)+1)
	g.limited = p.Watermarks != (policy.Depth{})
	for i, c := range p.Classes {
		g.limited = g.limited || c.MaxMessages > 0 || c.MaxBytes > 0
		for j, b := range old {
			if b != nil && oldPolicy.Classes[j-1].Name == c.Name && b.rate == c.Rate {
				g.classes[i+1] = b
			}
		}
	}
	g.shares = make(map[string]policy.Rate, len(p.Keys))
	for _, s := range p.Keys {
		g.shares[s.Key] = s.Inherit(p.KeyDefaults).Rate
	}
	for key, b := range g.keys {
		if b.rate != g.keyRate(key) {
			delete(g.keys, key)
		}
	}
}

// Memory returns about how many bytes the rates of fair keys take.
func (g *Admitter) Memory() int64 {
	const each = 256 // a bucket, its place in the map, and a key
	return int64(len(g.keys)) * each
}

// Admit checks a batch, which is admitted as a whole or not at all. An admitted batch has
// used up its rates; Refund returns them if it was not stored.
func (g *Admitter) Admit(now time.Time, requests []AdmitRequest, d Depths) Decision {
	defer g.forget()
	for _, a := range requests {
		g.addClaims(now, a)
	}
	if r := g.tooFast(); r != nil {
		return Decision{Refusal: r}
	}
	if g.limited {
		g.batch.begin(g.policy, d)
		for _, a := range requests {
			if r := g.batch.fit(a); r != nil {
				return Decision{Refusal: r}
			}
		}
	}
	for _, c := range g.claims {
		c.tokens -= c.wanted
	}
	return Decision{Evict: slices.Clone(g.batch.evicted)}
}

// addClaims adds what a message needs of its rates.
func (g *Admitter) addClaims(now time.Time, a AdmitRequest) {
	if c := g.policy.Class(a.Class); c != nil && c.Rate.PerSecond() > 0 {
		if g.classes[a.Class] == nil {
			g.classes[a.Class] = newBucket(now, c.Rate)
		}
		g.touch(now, claim{bucket: g.classes[a.Class], class: a.Class})
	}
	rate := g.keyRate(a.Key)
	if rate.PerSecond() <= 0 {
		return
	}
	b, ok := g.keys[a.Key]
	if !ok {
		g.sweep(now)
		b = newBucket(now, rate)
		g.keys[a.Key] = b
	}
	g.touch(now, claim{b, a.Class, a.Key, true})
}

func (g *Admitter) touch(now time.Time, c claim) {
	if c.wanted == 0 {
		c.refill(now)
		g.claims = append(g.claims, c)
	}
	c.wanted++
}

// keyRate returns the rate of a fair key; without fair keys there is none.
func (g *Admitter) keyRate(key string) policy.Rate {
	if g.policy.FairKey == "" {
		return policy.Rate{}
	}
	if r, ok := g.shares[key]; ok {
		return r
	}
	return g.policy.KeyDefaults.Rate
}

// sweep drops the keys whose bucket is full, each time that their number has doubled.
func (g *Admitter) sweep(now time.Time) {
	if len(g.keys) < g.sweepAt {
		return
	}
	for key, b := range g.keys {
		if b.wanted == 0 && b.full(now) {
			delete(g.keys, key)
		}
	}
	g.sweepAt = max(2*len(g.keys), leastSweep)
}

// tooFast rejects a batch whose rates are used up, until the slowest of them allows it.
func (g *Admitter) tooFast() *Refusal {
	var longest time.Duration
	var worst claim
	for _, c := range g.claims {
		if wait := c.waitTime(); wait > longest {
			longest, worst = wait, c
		}
	}
	if longest == 0 {
		return nil
	}
	reason := fmt.Sprintf("rate limit of %v exceeded", worst.rate)
	if worst.keyed {
		reason = fmt.Sprintf("rate limit of %v for key %q exceeded", worst.rate, worst.key)
	}
	return &Refusal{worst.class, g.policy.ClassName(worst.class), reason, longest}
}

// known returns the number of a class, zero if the policy does not have it.
func (g *Admitter) known(class uint8) uint8 {
	if int(class) < len(g.classes) {
		return class
	}
	return 0
}

// forget clears the claims of a batch.
func (g *Admitter) forget() {
	for _, c := range g.claims {
		c.wanted = 0
	}
	clear(g.claims)
	g.claims = g.claims[:0]
	g.batch.end()
}

// Refund returns the rates that an admitted batch has used, if it was not stored.
func (g *Admitter) Refund(requests []AdmitRequest) {
	for _, a := range requests {
		if b := g.classes[g.known(a.Class)]; b != nil {
			b.tokens = min(b.tokens+1, b.rate.Burst())
		}
		if b := g.keys[a.Key]; b != nil {
			b.tokens = min(b.tokens+1, b.rate.Burst())
		}
	}
}
