// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/ordering"
)

// Parse reads a policy. Nothing, and null, is the zero Policy. The error is
// Faults: everything that is wrong, each with its path.
func Parse(raw []byte) (*Policy, error) {
	var r reader
	if err := limits.CheckBytes("policy", len(raw), limits.Policy); err != nil {
		r.faults.addf("", "%v", err)
		return nil, r.faults
	}
	return r.parse(raw)
}

// ParseStored is Parse for a policy that was accepted before: it may exceed the present
// limits.
func ParseStored(raw []byte) (*Policy, error) {
	r := reader{stored: true}
	return r.parse(raw)
}

func (r *reader) parse(raw []byte) (*Policy, error) {
	p := new(Policy)
	if len(bytes.TrimSpace(raw)) == 0 {
		return p, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		r.faults.addf("", "not JSON: %v", err)
		return nil, r.faults
	}
	if _, err := decoder.Token(); err != io.EOF {
		r.faults.addf("", "not JSON: more after the end of it")
		return nil, r.faults
	}
	r.policy(node{"", tree}, p)
	if err := r.faults.err(); err != nil {
		return nil, err
	}
	p.compile()
	return p, nil
}

func (r *reader) policy(v node, p *Policy) {
	r.object(v, fields{
		{"revision", func(v node) { p.Revision = r.integer(v, 0, maxInteger) }},
		{"discipline", func(v node) { p.Discipline = ordering.Discipline(r.word(v, ordering.Disciplines)) }},
		{"aging", func(v node) { r.agingRule(v, &p.Aging) }},
		{"saturation", func(v node) { p.Saturation = r.saturation(v) }},
		{"levelOrder", func(v node) { p.LevelOrder = ordering.LevelOrder(r.word(v, ordering.LevelOrders)) }},
		{"fairKey", func(v node) { p.FairKey, p.fairKey = r.fairKey(v) }},
		{"keys", func(v node) { r.keys(v, p) }},
		{"keyDefaults", func(v node) { p.KeyDefaults = r.share(v, keyDefaults) }},
		{"watermarks", func(v node) {
			r.object(v, fields{
				{"depth", func(v node) { p.Watermarks.Count = r.integer(v, 1, maxInteger) }},
				{"bytes", func(v node) { p.Watermarks.Bytes = r.size(v) }},
			})
		}},
		{"classes", func(v node) { r.classes(v, p) }},
		{"alerts", func(v node) {
			r.object(v, fields{
				{"webhook", func(v node) { p.Alerts.Webhook = r.address(v) }},
				{"secret", func(v node) { p.Alerts.Secret = r.text(v) }},
			})
		}},
	})
	r.bounded(v, p)
	r.checkCombinations(v, p)
}

func (r *reader) agingRule(v node, l *AgingRule) {
	r.object(v, fields{
		{"interval", func(v node) {
			if l.Interval = r.duration(v); l.Interval <= 0 {
				r.faultf(v, "must be longer than zero: without waiting nothing rises")
			}
		}},
		{"maxLevel", func(v node) { l.MaxLevel, _ = r.level(v) }},
	})
}

// bounded rejects aging that never raises a message, or has no maximum.
func (r *reader) bounded(v node, p *Policy) {
	if p.Discipline != ordering.Aging {
		return
	}
	aging, _ := v.child("aging")
	for _, name := range []string{"interval", "maxLevel"} {
		if _, ok := aging.child(name); !ok {
			r.faultf(node{join(join(v.path, "aging"), name), nil}, "missing: without it aging has no bound")
		}
	}
}

// checkCombinations checks fields against each other.
func (r *reader) checkCombinations(v node, p *Policy) {
	r.fitting(v, p)
	if p.FairKey == "" {
		for _, name := range []string{"keys", "keyDefaults"} {
			if c, ok := v.child(name); ok {
				r.faultf(c, "there is no fairKey whose values these could be")
			}
		}
	}
	for i, c := range p.Classes {
		path := index(join(v.path, "classes"), i)
		missing := node{join(path, "level"), nil}
		switch {
		case !c.LevelFromMessage:
		case p.Discipline == ordering.Deadline || p.Discipline == ordering.Weighted:
			r.faultf(missing, "missing: under %s it is the level that counts", p.Discipline)
		case p.saturable():
			r.faultf(missing, "missing: it is levels that have shares when the queue is saturated")
		}
	}
}

func (r *reader) fairKey(v node) (string, *filter.Expr) {
	text := r.text(v)
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	if err := r.checkSQL(text); err != nil { // before memory is taken for it
		r.faultf(v, "%s", sqlProblem(err))
		return text, nil
	}
	x, err := filter.ParseValue(text, nil)
	if err != nil {
		r.faultf(v, "%s", sqlProblem(err))
	}
	return text, x
}

func (r *reader) keys(v node, p *Policy) {
	seen := map[string]bool{}
	r.list(v, func(v node) {
		s := r.share(v, singleKey)
		if seen[s.Key] {
			r.faultf(v, "key %q has a share already", s.Key)
		}
		seen[s.Key] = true
		p.Keys = append(p.Keys, s)
	})
}

// shareKind distinguishes the share of one key from the default share.
type shareKind uint8

const (
	singleKey shareKind = iota
	keyDefaults
)

func (r *reader) share(v node, kind shareKind) (s Share) {
	fs := fields{
		{"weight", func(v node) { s.Weight = r.weight(v) }},
		{"concurrency", func(v node) { s.Concurrency = uint32(r.integer(v, 1, 1<<31)) }},
		{"rate", func(v node) { s.Rate = r.rate(v) }},
		{"deliveryRate", func(v node) { s.DeliveryRate = r.rate(v) }},
	}
	if kind == singleKey {
		fs = append(fields{{"key", func(v node) { s.Key = r.keyText(v) }}}, fs...)
		if _, ok := v.child("key"); !ok {
			r.faultf(node{join(v.path, "key"), nil}, "missing")
		}
	}
	r.object(v, fs)
	return s
}
