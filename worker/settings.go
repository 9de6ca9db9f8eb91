// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/window"
)

// ErrInvalid means that the settings of a pool cannot be used; the text names each.
var ErrInvalid = errors.New("worker: invalid settings")

// Defaults of a pool.
const (
	defaultGrace    = 30 * time.Second
	defaultBudget   = 10
	defaultCoolDown = time.Minute
	defaultIdle     = time.Second
	defaultName     = "pool"
)

var defaultRetry = Exponential(2*time.Second, 10*time.Minute)

// settings are those of a pool, checked and with their defaults.
type settings struct {
	name    string
	sources []Source
	slots   int
	grace   time.Duration
	retry   Backoff
	preempt Preemption
	windows window.Set
	handler Handler
	log     *slog.Logger
}

// checked returns the settings, or every fault at once.
func (p *Pool) checked() (settings, error) {
	s := settings{
		sources: p.Sources,
		slots:   cmp.Or(p.Slots, 1),
		grace:   cmp.Or(p.Grace, defaultGrace),
		retry:   p.Retry,
		handler: p.Handler,
		log:     cmp.Or(p.Log, slog.Default()),
	}
	if len(s.sources) == 0 {
		s.sources = []Source{{Entity: p.Source}}
	}
	s.name = cmp.Or(p.Name, s.sources[0].Entity, defaultName)
	s.log = s.log.With("pool", s.name)
	if s.retry == nil {
		s.retry = defaultRetry
	}
	if p.Preempt != nil {
		s.preempt = *p.Preempt
		s.preempt.Budget = cmp.Or(s.preempt.Budget, defaultBudget)
	}
	windows, err := p.parseWindows()
	if err := errors.Join(p.faults(), err); err != nil {
		return s, fmt.Errorf("%w: pool %q: %w", ErrInvalid, s.name, err)
	}
	s.windows = windows
	for i := len(p.Middleware) - 1; i >= 0; i-- {
		s.handler = p.Middleware[i](s.handler)
	}
	return s, nil
}

// faults returns all that is wrong with the settings.
func (p *Pool) faults() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(p.Client == nil && p.open == nil, "Client is missing")
	fault(p.Handler == nil, "Handler is missing")
	fault(p.Slots < 0, "Slots is %d, want at least 0", p.Slots)
	fault(p.Buffer < 0, "Buffer is %d, want at least 0", p.Buffer)
	fault(p.Buffer > 0 && len(p.Sources) > 1, "Buffer is for a pool of one source, this has %d", len(p.Sources))
	fault(p.Select > ByWeight, "Select is %d, which is no rule", p.Select)
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Timeout", p.Timeout}, {"Grace", p.Grace}, {"LatestStart", p.LatestStart}} {
		fault(d.value < 0, "%s is %v, want at least 0", d.name, d.value)
	}
	fault(p.LatestStart > 0 && len(p.Windows) == 0 && !p.WhenSpare, "LatestStart needs Windows or WhenSpare")
	fault(len(p.SpareBeside) > 0 && !p.WhenSpare, "SpareBeside needs WhenSpare")
	fault(len(p.SpareBeside) > maxSources, "SpareBeside has %d queues, at most %d are allowed", len(p.SpareBeside), maxSources)
	fault(p.Preempt != nil && p.Preempt.MinRun < 0, "Preempt.MinRun is negative")
	for i, m := range p.Middleware {
		fault(m == nil, "Middleware %d is nil", i)
	}
	if s := p.Scale; s != nil {
		fault(s.Min < 0, "Scale.Min is %d, want at least 0", s.Min)
		fault(s.Max < max(s.Min, 1), "Scale.Max is %d, want at least 1 and at least Scale.Min", s.Max)
		fault(s.CoolDown < 0, "Scale.CoolDown is %v, want at least 0", s.CoolDown)
	}
	if s := p.Sessions; s != nil {
		fault(s.Idle < 0, "Sessions.Idle is %v, want at least 0", s.Idle)
		for _, other := range []struct {
			name string
			set  bool
		}{
			{"Sources", len(p.Sources) > 1}, {"Preempt", p.Preempt != nil}, {"Buffer", p.Buffer > 0}, {"DurableLocks", p.DurableLocks},
			{"MinPriority", p.MinPriority != ""}, {"MaxPriority", p.MaxPriority != ""}, {"LatestStart", p.LatestStart > 0},
		} {
			fault(other.set, "%s does not combine with Sessions", other.name)
		}
	}
	if h, ok := p.Handler.(interface{ Check() error }); ok {
		errs = append(errs, h.Check())
	}
	return errors.Join(errors.Join(errs...), p.sourceFaults())
}

func (p *Pool) sourceFaults() error {
	var errs []error
	if p.Source != "" && len(p.Sources) > 0 {
		errs = append(errs, errors.New("Source and Sources are both set"))
	}
	seen := map[string]bool{}
	for i, s := range p.Sources {
		name := strings.ToLower(s.Entity)
		switch {
		case name == "" && len(p.Sources) > 1:
			errs = append(errs, fmt.Errorf("Sources: the name of number %d is empty", i+1))
		case seen[name]:
			errs = append(errs, fmt.Errorf("Sources: %q is there twice", s.Entity))
		}
		seen[name] = true
		if s.Weight < 0 || s.Weight > maxWeight {
			errs = append(errs, fmt.Errorf("Sources: the weight %d of %q is outside 0..%d", s.Weight, s.Entity, maxWeight))
		}
		if s.Weight > 0 && p.Select != ByWeight {
			errs = append(errs, fmt.Errorf("Sources: %q has a weight, which needs Select: ByWeight", s.Entity))
		}
	}
	return errors.Join(errs...)
}

// maxWeight bounds weights, so that sums of them stay small.
const maxWeight = 1000
