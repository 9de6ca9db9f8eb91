// SPDX-License-Identifier: Apache-2.0

package config

import (
	_ "embed" // for pools.example.yaml
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/window"
)

// Pool is a worker pool that runs a program for each message. A zero setting means
// the default of package worker.
type Pool struct {
	Name                     string
	Sources                  []PoolSource
	Select                   string // order, level or weight
	MinPriority, MaxPriority string

	Exec      []string
	Dir       string
	Env       map[string]string
	KillAfter entity.Duration
	MaxOutput Size
	Reply     bool

	Slots, Buffer int
	DurableLocks  bool
	Sessions      bool
	SessionIdle   entity.Duration
	Timeout       entity.Duration
	Retry         Retry
	Grace         entity.Duration
	Preempt       *Preempt
	Scale         *Scale
	Windows       []string
	WhenSpare     bool
	SpareBeside   []string
	LatestStart   entity.Duration
}

// PoolSource is a queue or subscription of a pool.
type PoolSource struct {
	Entity string
	Weight int
}

// Preempt are the settings of preempting.
type Preempt struct {
	MinRun entity.Duration
	Budget int
}

// Scale are the limits of autoscaling.
type Scale struct {
	Min, Max int
	CoolDown entity.Duration
}

// Retry is how long to wait after failures: First, then twice as long each time up to
// Most. They are equal if it is always the same, and zero for the default.
type Retry struct{ First, Most entity.Duration }

//go:embed pools.example.yaml
var poolsExample string

// PoolsExample returns a file of pools that explains itself. It parses.
func PoolsExample() string { return poolsExample }

// LoadPools reads a file of pools. Every fault is reported at once, with its line.
func LoadPools(path string) ([]Pool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read pools: %w", err)
	}
	return parsePools(filepath.Base(path), text)
}

func parsePools(file string, text []byte) ([]Pool, error) {
	d := &decoder{
		source:  source{file: file, at: map[string]position{}},
		anchors: map[string]ast.Node{},
		budget:  maxValues,
	}
	body, err := d.document(text)
	if err != nil {
		return nil, err
	}
	var pools []Pool
	if body != nil {
		d.object(d.root(body), fields{"pools": items(d, &pools, d.pool)})
	}
	faults := d.faults
	for _, f := range poolsFaults(pools) {
		if !d.unread(f.Path) {
			faults = append(faults, d.source.fault(f.Path, f.Problem))
		}
	}
	return pools, faults.err()
}

// pool reads the keys of a pool.
func (d *decoder) pool(n node, p *Pool) {
	d.object(n, fields{
		"name":         d.text(&p.Name),
		"source":       func(n node) { p.Sources = make([]PoolSource, 1); d.text(&p.Sources[0].Entity)(n) },
		"sources":      items(d, &p.Sources, d.poolSource),
		"select":       d.text(&p.Select),
		"minPriority":  d.text(&p.MinPriority),
		"maxPriority":  d.text(&p.MaxPriority),
		"exec":         d.texts(&p.Exec),
		"dir":          d.text(&p.Dir),
		"env":          d.textMap(&p.Env),
		"killAfter":    d.duration(&p.KillAfter),
		"maxOutput":    d.size(&p.MaxOutput),
		"reply":        d.boolean(&p.Reply),
		"slots":        number(d, &p.Slots),
		"buffer":       number(d, &p.Buffer),
		"durableLocks": d.boolean(&p.DurableLocks),
		"sessions":     d.boolean(&p.Sessions),
		"sessionIdle":  d.duration(&p.SessionIdle),
		"timeout":      d.duration(&p.Timeout),
		"retry":        parsed(d, &p.Retry, ParseRetry),
		"grace":        d.duration(&p.Grace),
		"preempt":      d.preempt(&p.Preempt),
		"scale": func(n node) {
			if n.Node != nil {
				p.Scale = new(Scale)
				d.object(n, fields{"min": number(d, &p.Scale.Min), "max": number(d, &p.Scale.Max), "coolDown": d.duration(&p.Scale.CoolDown)})
			}
		},
		"windows":     d.texts(&p.Windows),
		"whenSpare":   d.boolean(&p.WhenSpare),
		"spareBeside": d.texts(&p.SpareBeside),
		"latestStart": d.duration(&p.LatestStart),
	})
	if pairs, _ := d.pairs(n); has(pairs, "source") && has(pairs, "sources") {
		d.faultf(n, "source and sources are both set")
	}
}

func has(pairs []pair, key string) bool {
	return slices.ContainsFunc(pairs, func(p pair) bool { return p.key == key })
}

// poolSource reads a name, or a name with a weight.
func (d *decoder) poolSource(n node, s *PoolSource) {
	if _, ok := textOf(n.Node); ok {
		d.text(&s.Entity)(n)
		return
	}
	d.object(n, fields{"entity": d.text(&s.Entity), "weight": number(d, &s.Weight)})
}

// preempt reads true, false, or the settings.
func (d *decoder) preempt(into **Preempt) func(node) {
	return func(n node) {
		if n.Node == nil {
			return
		}
		p := new(Preempt)
		if b, ok := n.Node.(*ast.BoolNode); ok {
			if b.Value {
				*into = p
			}
			return
		}
		d.object(n, fields{"minRun": d.duration(&p.MinRun), "budget": number(d, &p.Budget)})
		*into = p
	}
}

// textMap reads keys with texts.
func (d *decoder) textMap(into *map[string]string) func(node) {
	return func(n node) {
		if n.Node == nil {
			return
		}
		pairs, ok := d.pairs(n)
		if !ok {
			d.expected(n, "keys with values")
			return
		}
		*into = map[string]string{}
		for _, p := range pairs {
			var text string
			d.text(&text)(d.child(n, p.key, p.value))
			(*into)[p.key] = text
		}
	}
}

// ParseRetry reads 10s, which is always the same, or 1s..5m, which doubles.
func ParseRetry(text string) (Retry, error) {
	first, most, doubles := strings.Cut(text, "..")
	if !doubles {
		most = first
	}
	var r Retry
	var err1, err2 error
	r.First, err1 = entity.ParseDuration(first)
	r.Most, err2 = entity.ParseDuration(most)
	switch {
	case err1 != nil || err2 != nil:
		return Retry{}, fmt.Errorf("%q is not a time such as 10s, or a range such as 1s..5m", text)
	case r.First <= 0:
		return Retry{}, errors.New("the first wait must be more than zero")
	case r.Most < r.First:
		return Retry{}, fmt.Errorf("in %q the longest wait is below the first", text)
	}
	return r, nil
}

// selections are the values of select.
var selections = []string{"", "order", "level", "weight"}

// Faults returns what is wrong with a pool, whose paths begin with its keys.
func (p Pool) Faults() Faults {
	var fs Faults
	fault := func(bad bool, path, format string, args ...any) {
		if bad {
			fs = append(fs, Fault{Path: path, Problem: fmt.Sprintf(format, args...)})
		}
	}
	fault(len(p.Sources) == 0, "source", "is missing: the queue or subscription to take from")
	seen := map[string]bool{}
	for i, s := range p.Sources {
		at := fmt.Sprintf("sources[%d]", i)
		name := strings.ToLower(s.Entity)
		fault(name == "", at, "has no name")
		fault(seen[name], at, "%s is there twice", s.Entity)
		seen[name] = true
		fault(s.Weight < 0 || s.Weight > 1000, at+".weight", "is outside 0..1000")
		fault(s.Weight != 0 && p.Select != "weight", at+".weight", "needs select: weight")
	}
	fault(!slices.Contains(selections, p.Select), "select", "is none of order, level, weight")
	fault(len(p.Exec) == 0 || p.Exec[0] == "", "exec", "is missing: the program to run for each message, and its arguments")
	for name := range p.Env {
		fault(name == "" || strings.ContainsAny(name, "=\x00"), "env", "%q cannot be the name of a variable", name)
	}
	fault(p.Slots < 0, "slots", "is negative")
	fault(p.Buffer < 0, "buffer", "is negative")
	fault(p.Buffer > 0 && len(p.Sources) > 1, "buffer", "is for a pool of one source")
	fault(p.SessionIdle != 0 && !p.Sessions, "sessionIdle", "needs sessions")
	if p.Sessions {
		fault(len(p.Sources) > 1, "sessions", "is for a pool of one source")
		for _, other := range []struct {
			name string
			set  bool
		}{
			{"preempt", p.Preempt != nil}, {"buffer", p.Buffer > 0}, {"durableLocks", p.DurableLocks}, {"minPriority", p.MinPriority != ""},
			{"maxPriority", p.MaxPriority != ""}, {"latestStart", p.LatestStart > 0},
		} {
			fault(other.set, other.name, "does not combine with sessions")
		}
	}
	if p.Scale != nil {
		fault(p.Scale.Min < 0, "scale.min", "is negative")
		fault(p.Scale.Max < max(p.Scale.Min, 1), "scale.max", "must be at least 1, and at least the minimum")
	}
	for i, w := range p.Windows {
		if _, err := window.Parse([]string{w}, time.UTC); err != nil {
			fault(true, fmt.Sprintf("windows[%d]", i), "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	fault(len(p.SpareBeside) > 0 && !p.WhenSpare, "spareBeside", "needs whenSpare")
	fault(p.LatestStart > 0 && len(p.Windows) == 0 && !p.WhenSpare, "latestStart", "needs windows or whenSpare")
	return fs
}

// poolsFaults returns what is wrong with the pools of a file.
func poolsFaults(pools []Pool) Faults {
	var fs Faults
	if len(pools) == 0 {
		fs = append(fs, Fault{Path: "pools", Problem: "there are none"})
	}
	first := map[string]int{}
	for i, p := range pools {
		at := fmt.Sprintf("pools[%d]", i)
		for _, f := range p.Faults() {
			fs = append(fs, Fault{Path: join(at, f.Path), Problem: f.Problem})
		}
		name := p.Name
		if name == "" && len(p.Sources) > 0 {
			name = p.Sources[0].Entity
		}
		if other, ok := first[name]; ok && name != "" {
			fs = append(fs, Fault{Path: join(at, "name"), Problem: fmt.Sprintf("%s is the name of pools[%d] too; its default is the first source", name, other)})
			continue
		}
		first[name] = i
	}
	return fs
}
