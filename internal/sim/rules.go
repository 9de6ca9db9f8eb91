// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queue"
)

// rules are a policy in two forms: as the text that the real implementation
// reads, and as the model's values.
type rules struct {
	text    string
	real    *policy.Policy
	classes []class
	shares  map[string]keyShare // of single keys; "*" is all others
	fair    bool                // by the property tenant
	mark    depth
}

// class is a class in the model.
type class struct {
	name      string
	level     int // -1: the level of the message
	when      condition
	objective time.Duration
	weight    uint32
	rate      int // messages per second; zero is any number
	limit     depth
	evict     bool
}

// keyShare is a fair key in the model.
type keyShare struct {
	weight, concurrency uint32
	rate, pace          int // messages per second; zero is any number
}

// condition is a rule in SQL and what it means.
type condition struct {
	sql   string
	holds func(facts) bool
}

// facts are what rules may ask of a message.
type facts struct {
	kind, tenant string      // empty: not there
	n            int64       // -1: not there
	level        queue.Level // requested by the sender
}

// conditions are what classes can ask for. The last takes everything.
var conditions = []condition{
	{"kind = 'a'", func(f facts) bool { return f.kind == "a" }},
	{"kind <> 'a'", func(f facts) bool { return f.kind != "" && f.kind != "a" }},
	{"kind IN ('a', 'b') AND n > 2", func(f facts) bool { return (f.kind == "a" || f.kind == "b") && f.n > 2 }},
	{"kind IS NULL OR n = 0", func(f facts) bool { return f.kind == "" || f.n == 0 }},
	{"n >= 3", func(f facts) bool { return f.n >= 3 }},
	{"tenant LIKE 't1%'", func(f facts) bool { return strings.HasPrefix(f.tenant, "t1") }},
	{"NOT (n < 2)", func(f facts) bool { return f.n >= 2 }},
	{"", func(facts) bool { return true }},
}

func (s keyShare) machine(key string) queue.Share {
	return queue.Share{Key: key, Weight: max(s.weight, 1), Cap: s.concurrency, Rate: float64(s.pace), Burst: uint32(s.pace)}
}

// ranks computes the order settings of the levels from the classes: of the
// classes of a level, the shortest objective applies, and weights are added.
func (r *rules) ranks(o *queue.Order) {
	shares := o.Discipline == queue.Weighted || o.Saturation != queue.Saturation{}
	for _, c := range r.classes {
		for o.Discipline == queue.Deadline && c.objective > 0 && len(o.Objective) <= c.level {
			o.Objective = append(o.Objective, 0)
		}
		for shares && len(o.Weight) <= c.level {
			o.Weight = append(o.Weight, 0)
		}
		switch {
		case shares:
			o.Weight[c.level] += c.weight
		case o.Discipline == queue.Deadline && c.objective > 0:
			if at := &o.Objective[c.level]; *at == 0 || c.objective < *at {
				*at = c.objective
			}
		}
	}
}

// factsOf reads what rules may ask of a message.
func factsOf(m *message.Message) (f facts) {
	f.level, f.n = queue.DefaultLevel, -1
	if v, ok := m.Property("kind"); ok {
		f.kind, _ = v.Str()
	}
	if v, ok := m.Property("tenant"); ok {
		f.tenant, _ = v.Str()
	}
	if v, ok := m.Property("n"); ok {
		f.n, _ = v.Int()
	}
	if v, ok := m.Property("Priority"); ok {
		l, _ := v.Int()
		f.level = queue.Level(l)
	}
	return f
}

// classify returns a message's classification in the model, and checks that the
// real policy returns the same.
func (w *world) classify(r *rules, m *message.Message) queue.Classification {
	want := r.classOf(factsOf(m))
	v := r.real.Classify(&filter.Envelope{Message: m})
	got := queue.Classification{Level: queue.Level(v.Level), Class: queue.Class(v.Class), Key: v.Key}
	if got != want {
		w.failf("policy %s: message %+v is classified as %+v, want %+v", r.text, factsOf(m), got, want)
	}
	return want
}

// classOf returns the classification of a message: the first class whose
// condition matches.
func (r *rules) classOf(f facts) (v queue.Classification) {
	v.Level = f.level
	if r.fair {
		v.Key = f.tenant
	}
	for i, c := range r.classes {
		if !c.when.holds(f) {
			continue
		}
		v.Class = queue.Class(i + 1)
		if c.level >= 0 {
			v.Level = queue.Level(c.level)
		}
		break
	}
	return v
}

// class returns a class by its number, nil if there is none.
func (r *rules) class(n queue.Class) *class {
	if n == 0 || int(n) > len(r.classes) {
		return nil
	}
	return &r.classes[n-1]
}

// inBytes reports whether a limit is one of bytes.
func (r *rules) inBytes() bool {
	return r.mark.bytes > 0 || slices.ContainsFunc(r.classes, func(c class) bool { return c.limit.bytes > 0 })
}
