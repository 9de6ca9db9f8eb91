// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/triagemq/triagemq/internal/limits"
)

const (
	// silence is how long an instance may say nothing before it is forgotten.
	silence = 3 * time.Second
	// memory is how long the orders of a pool without instances are kept.
	memory = 24 * time.Hour

	// sweepEvery is how often all pools are looked at, and not only the reporting one.
	sweepEvery = time.Second
	// rateWindow is the least time over which a rate is measured.
	rateWindow = 5 * time.Second
	// shareOfOwner is the part of all pools and instances that one queue or topic may have.
	shareOfOwner = 10
)

// Registry is all pools. The zero value is ready for use.
type Registry struct {
	mu    sync.Mutex
	pools map[key]*pool // guarded by mu
	full  full          // guarded by mu
	key   []byte        // of seals; set before use, or guarded by mu
	swept time.Time     // when all pools were last looked at; guarded by mu
}

// key is what makes a pool one: see the package's assumptions.
type key struct{ name, source string }

type pool struct {
	key
	owner     string // of the source
	sources   []string
	instances map[string]*instance
	orders    Orders
	given     bool      // the orders were given here, and not learned
	seen      time.Time // the last report or order
	counts    Counts
	fullAt    []string // sources for which it is counted in Registry.full
}

// instance is the last report of one, with what its rate is measured by.
type instance struct {
	Report
	since, seen time.Time
	// last is where the present window of the rate began, and before it the one before.
	last, before sample
}

type sample struct {
	at        time.Time
	completed uint64
}

// perSecond is the rate since the window before the present one began.
func (i *instance) perSecond() float64 {
	took := i.seen.Sub(i.before.at).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(grown(i.before.completed, i.Counts.Completed)) / took
}

// Announce takes the report of an instance and returns the orders of its pool.
func (r *Registry) Announce(now time.Time, report Report) (Answer, error) {
	if err := report.check(); err != nil {
		return Answer{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.swept) >= sweepEvery {
		r.sweep(now)
	}
	p, err := r.admit(now, &report)
	if err != nil {
		return Answer{}, err
	}
	p.seen = now
	r.learn(now, p, report.Orders)
	if report.Leaving {
		p.leave(&report)
	} else {
		p.note(now, &report)
	}
	p.forget(now)
	r.judge(p)
	return Answer{Orders: p.orders, Instances: len(p.instances), Retrying: p.retrying(), Spare: r.spare(p, report.Beside)}, nil
}

func (p *pool) retrying() int {
	n := 0
	for _, i := range p.instances {
		n += i.Retrying
	}
	return n
}

// admit returns the pool of a report, a new one if there is space for it.
func (r *Registry) admit(now time.Time, report *Report) (*pool, error) {
	k, owner := key{report.Name, report.Sources[0]}, cmp.Or(report.Owner, report.Sources[0])
	p := r.pools[k]
	if p == nil {
		if report.Leaving {
			return &pool{key: k}, nil // nothing to keep
		}
		if err := r.checkPools(now, owner); err != nil {
			return nil, err
		}
	}
	if p == nil || p.instances[report.Instance] == nil && !report.Leaving {
		if err := r.checkInstances(owner); err != nil {
			return nil, err
		}
	}
	if p == nil {
		k = key{strings.Clone(k.name), strings.Clone(k.source)}
		p = &pool{key: k, owner: strings.Clone(owner), instances: map[string]*instance{}}
		if r.pools == nil {
			r.pools = map[key]*pool{}
		}
		r.pools[k] = p
	}
	return p, nil
}

// checkPools reports that there can be no more pools of an owner. When there are too
// many in all, the one whose orders are kept for the longest gives way.
func (r *Registry) checkPools(now time.Time, owner string) error {
	n := 0
	for _, p := range r.pools {
		if p.owner == owner {
			n++
		}
	}
	if n < limits.Pools/shareOfOwner && len(r.pools) < limits.Pools {
		return nil
	}
	r.sweep(now)
	var oldest *pool
	for _, p := range r.pools {
		same := n < limits.Pools/shareOfOwner || p.owner == owner
		if len(p.instances) == 0 && same && (oldest == nil || p.seen.Before(oldest.seen)) {
			oldest = p
		}
	}
	if oldest == nil {
		return fmt.Errorf("%w: there are %d pools, of which %d take from %q", ErrTooMany, len(r.pools), n, owner)
	}
	r.remove(oldest)
	return nil
}

// checkInstances reports that there can be no more instances of an owner.
func (r *Registry) checkInstances(owner string) error {
	here, all := 0, 0
	for _, p := range r.pools {
		all += len(p.instances)
		if p.owner == owner {
			here += len(p.instances)
		}
	}
	if here >= limits.PoolInstances/shareOfOwner || all >= limits.PoolInstances {
		return fmt.Errorf("%w: there are %d instances, of which %d take from %q", ErrTooMany, all, here, owner)
	}
	return nil
}

// learn takes over the orders that an instance obeys if the broker has given them, before a
// restart, and they are later than those known, unless there are some that were given in
// this life. A revision is never ahead of the clock, so that the next order has a higher one.
func (r *Registry) learn(now time.Time, p *pool, told Orders) {
	if p.given || told.Revision <= p.orders.Revision || !r.sealed(p.key, told) {
		return
	}
	if told.Revision = min(told.Revision, now.UnixMilli()); told.Revision > p.orders.Revision {
		told.Seal = r.seal(p.key, told)
		p.orders = told
	}
}

// note keeps a report. Texts are copied: they may be part of a larger request.
func (p *pool) note(now time.Time, report *Report) {
	i := p.instances[report.Instance]
	if i == nil {
		began := sample{now, report.Counts.Completed}
		i = &instance{since: now, last: began, before: began}
		i.Counts = report.Counts
		p.instances[strings.Clone(report.Instance)] = i
	}
	p.counts.add(i.Counts, report.Counts)
	host, idle := kept(i.Host, report.Host), kept(i.Idle, report.Idle)
	p.keepSources(report.Sources)
	i.Report, i.seen = *report, now
	i.Host, i.Idle = host, idle
	i.Name, i.Instance, i.Owner, i.Sources, i.Beside, i.Orders = "", "", "", nil, nil, Orders{} // of the pool, and the key
	if now.Sub(i.last.at) >= rateWindow {
		i.before, i.last = i.last, sample{now, i.Counts.Completed}
	}
}

// kept returns the text that is kept already, or a copy of a new one: of as much of it as
// people read.
func kept(old, text string) string {
	if len(text) > limits.ClientText {
		text = strings.ToValidUTF8(text[:limits.ClientText], "")
	}
	if old == text {
		return old
	}
	return strings.Clone(text)
}

func (p *pool) keepSources(sources []string) {
	sources = sources[:min(len(sources), keptSources)]
	if slices.Equal(sources, p.sources) {
		return
	}
	p.sources = make([]string, len(sources)) // lists may show the old ones
	for i, s := range sources {
		p.sources[i] = strings.Clone(s)
	}
}

// leave counts the last report of an instance, and forgets it.
func (p *pool) leave(report *Report) {
	if i := p.instances[report.Instance]; i != nil {
		p.counts.add(i.Counts, report.Counts)
		delete(p.instances, report.Instance)
	}
}

// forget drops the instances that are silent.
func (p *pool) forget(now time.Time) {
	maps.DeleteFunc(p.instances, func(_ string, i *instance) bool { return now.Sub(i.seen) > silence })
}

// sweep forgets what has been silent for too long.
func (r *Registry) sweep(now time.Time) {
	r.swept = now
	for _, p := range r.pools {
		p.forget(now)
		r.judge(p)
		if len(p.instances) == 0 && (p.orders.Revision == 0 || now.Sub(p.seen) > memory) {
			r.remove(p)
		}
	}
}

// remove forgets a pool without instances.
func (r *Registry) remove(p *pool) {
	p.instances = nil
	r.judge(p)
	delete(r.pools, p.key)
}

// List returns all pools, by name and source. Pools without instances are listed while
// their orders are kept.
func (r *Registry) List(now time.Time) []Pool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	return r.listed(func(*pool) bool { return true })
}

func (r *Registry) listed(which func(*pool) bool) []Pool {
	list := []Pool{}
	for _, p := range r.pools {
		if which(p) {
			list = append(list, p.view())
		}
	}
	slices.SortFunc(list, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Source, b.Source))
	})
	return list
}

func (p *pool) view() Pool {
	v := Pool{
		Name: p.name, Source: p.source, Sources: p.sources, Paused: p.orders.Paused, OrderedSlots: p.orders.Slots,
		Counts: p.counts, Instances: []Instance{},
	}
	for _, id := range slices.Sorted(maps.Keys(p.instances)) {
		i := p.instances[id]
		v.Slots, v.Busy = v.Slots+i.Slots, v.Busy+i.Busy
		v.Suspended, v.Retrying = v.Suspended+i.Suspended, v.Retrying+i.Retrying
		v.PerSecond += i.perSecond()
		v.Instances = append(v.Instances, Instance{
			Host: i.Host, Process: i.Process, Since: i.since.UTC(), Slots: i.Slots, Busy: i.Busy,
			Suspended: i.Suspended, Retrying: i.Retrying, Paused: i.Paused, Idle: i.Idle, PerSecond: i.perSecond(),
		})
	}
	return v
}

// Order changes the orders of all pools of a name and returns them. An empty source
// means the pools of that name at all sources.
func (r *Registry) Order(now time.Time, name, source string, change func(*Orders)) ([]Pool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	meant := func(p *pool) bool { return p.name == name && (source == "" || p.source == source) }
	for _, p := range r.pools {
		if !meant(p) {
			continue
		}
		next := p.orders
		change(&next)
		if err := checkSlots(next.Slots); err != nil {
			return nil, err // for all of them: nothing is changed yet
		}
		next.Revision = max(p.orders.Revision+1, now.UnixMilli())
		next.Seal = r.seal(p.key, next)
		p.orders, p.given, p.seen = next, true, now
	}
	list := r.listed(meant)
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	return list, nil
}
