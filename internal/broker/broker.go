// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/clock"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/shard"
)

// Broker knows every entity of a namespace and the shards they live in.
type Broker struct {
	shards []*shard.Shard
	clock  *clock.Clock // the shards'
	log    *slog.Logger
	movers *movers

	reclasser *reclasser
	alerts    *alerts
	damages   damages
	changed   atomic.Pointer[func(name string)]
	posts     sync.Pool // of *post
	requests  *requests

	// longKeys has keys of entities refused that are too short; set before the broker
	// is used.
	longKeys bool

	// admin holds one token: whoever has it may change entities. It is a
	// channel and not a mutex because it is held while the disk is waited for.
	admin chan struct{}

	mu    sync.RWMutex
	nodes map[string]*node // guarded by mu; by entity.Key of the path
}

// Open returns a broker over recovered shards. Run must be called for messages to
// be moved on and idle entities deleted.
func Open(shards []*shard.Shard, log *slog.Logger) (*Broker, error) {
	b := &Broker{
		shards: shards,
		clock:  clockOf(shards),
		log:    log,
		admin:  make(chan struct{}, 1),
		nodes:  make(map[string]*node),
	}
	b.movers = newMovers(b)
	b.reclasser = newReclasser(b)
	b.alerts = newAlerts()
	b.requests = newRequests()
	b.admin <- struct{}{}
	for _, s := range shards {
		if err := b.recoverShard(s); err != nil {
			return nil, err
		}
		s.OnDamage(b.damaged)
	}
	for _, n := range b.sorted() {
		if n.kind == KindTopic {
			if err := b.reroute(n); err != nil {
				return nil, fmt.Errorf("recover %q: %w", n.path, err)
			}
		}
	}
	return b, nil
}

// recoverShard takes over the definitions of one shard. Topics come before their
// subscriptions, whose properties follow from them in part.
func (b *Broker) recoverShard(s *shard.Shard) error {
	type found struct {
		shard.Definition
		def *definition
	}
	var all []found
	for _, sd := range s.Definitions() {
		def, err := decodeDefinition(sd.Meta)
		if err != nil {
			return fmt.Errorf("recover %q: %w", sd.Name, err)
		}
		all = append(all, found{sd, def})
	}
	slices.SortStableFunc(all, func(x, y found) int {
		return cmp.Compare(order(x.def.Kind), order(y.def.Kind))
	})
	for _, f := range all {
		n := &node{kind: f.def.Kind, path: f.Name, shard: s, id: f.ID}
		var topic *definition
		if n.kind == KindSubscription {
			p, err := entity.ParsePath(f.Name)
			if err != nil {
				return fmt.Errorf("recover %q: %w", f.Name, err)
			}
			n.topic = b.nodes[entity.Key(p.Entity)]
			if n.topic == nil {
				return fmt.Errorf("recover %q: %w: its topic", f.Name, ErrNotFound)
			}
			topic = n.topic.def.Load()
		}
		if err := f.def.derive(topic, nil, policy.ParseStored); err != nil {
			return fmt.Errorf("recover %q: its policy: %w", f.Name, err)
		}
		n.def.Store(f.def)
		b.nodes[entity.Key(n.path)] = n
	}
	return nil
}

func order(k Kind) int { return slices.Index([]Kind{KindQueue, KindTopic, KindSubscription}, k) }

// Run moves messages on, measures, classifies anew what a changed policy asks for,
// and deletes idle entities, until ctx ends.
func (b *Broker) Run(ctx context.Context) error {
	for _, n := range b.sorted() {
		b.movers.watch(n)
		if def := n.def.Load(); def.Classified != def.PolicyRevision {
			b.reclasser.add(n) // the last process did not get to the end of it
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { b.movers.run(ctx) })
	wg.Go(func() { b.reap(ctx) })
	wg.Go(func() { b.measure(ctx) })
	wg.Go(func() { b.reclasser.run(ctx) })
	wg.Go(func() { b.announce(ctx) })
	wg.Wait()
	return nil
}

// Now returns the time by which the broker decides about messages.
func (b *Broker) Now() time.Time { return b.clock.Now() }

// clockOf returns the clock that the shards share.
func clockOf(shards []*shard.Shard) *clock.Clock {
	if len(shards) == 0 {
		return clock.New(nil)
	}
	return shards[0].Clock()
}

// home returns the shard for an entity: that of its queue's or topic's name.
func (b *Broker) home(name string) *shard.Shard {
	h := fnv.New32a()
	h.Write([]byte(entity.Key(name)))
	return b.shards[h.Sum32()%uint32(len(b.shards))]
}

// ShardStats returns what each shard did since the start.
func (b *Broker) ShardStats() []shard.Stats {
	stats := make([]shard.Stats, len(b.shards))
	for i, s := range b.shards {
		stats[i] = s.Stats()
	}
	return stats
}

// Address is where a name leads.
type Address struct {
	Path     string // of the entity, as its creator spelled it
	Kind     Kind
	SubQueue entity.SubQueue
	// ID tells the entity from others that have its name before or after it.
	ID uint64
}

// Resolve finds the entity that an address names.
func (b *Broker) Resolve(addr string) (Address, error) {
	n, sub, err := b.find(addr)
	if err != nil {
		return Address{}, err
	}
	return Address{Path: n.path, Kind: n.kind, SubQueue: sub, ID: uint64(n.id)}, nil
}

// Authorization returns the access rules of a queue or topic, and its ID as in
// Address.
func (b *Broker) Authorization(name string) (id uint64, rules entity.AuthorizationRules, ok bool) {
	n := b.node(name)
	if n == nil {
		return 0, nil, false
	}
	return uint64(n.id), n.def.Load().authorization(), true
}

// authorization returns the access rules; a subscription has those of its topic.
func (d *definition) authorization() entity.AuthorizationRules {
	switch d.Kind {
	case KindQueue:
		return d.Queue.AuthorizationRules
	case KindTopic:
		return d.Topic.AuthorizationRules
	}
	return nil
}

func sameAuthorization(a, b entity.AuthorizationRules) bool {
	return slices.EqualFunc(a, b, func(x, y entity.AuthorizationRule) bool {
		return x.KeyName == y.KeyName && slices.Equal(x.Rights, y.Rights) &&
			x.PrimaryKey == y.PrimaryKey && x.SecondaryKey == y.SecondaryKey
	})
}

// OnChange has fn called when the access rules of an entity were changed, or it was
// deleted, with the name of the queue or topic, or of the topic of a subscription, as
// [entity.Key] writes it. It is called one at a time, after the fact, and must return
// soon. There is one fn, set before the broker runs.
func (b *Broker) OnChange(fn func(name string)) { b.changed.Store(&fn) }

func (b *Broker) tellChanged(n *node) {
	if fn := b.changed.Load(); fn != nil {
		(*fn)(entity.Owner(n.path))
	}
}

// find returns the node that an address names, and which of its queues. The
// $management of an entity is not the entity: it takes requests, and no messages.
func (b *Broker) find(addr string) (*node, entity.SubQueue, error) {
	p, err := entity.ParsePath(addr)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %q: %w", ErrNotFound, addr, err)
	}
	if p.Management {
		return nil, 0, fmt.Errorf("%w: %q takes requests and no messages", ErrNotAllowed, addr)
	}
	n := b.node(p.Queue())
	if n == nil {
		return nil, 0, fmt.Errorf("%w: %q", ErrNotFound, addr)
	}
	return n, p.SubQueue, nil
}

// node returns the entity of that path, nil if there is none.
func (b *Broker) node(path string) *node {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.nodes[entity.Key(path)]
}

// readable returns the node and part of an address that can be received from, and
// counts as use. Of a topic that is its dead letters.
func (b *Broker) readable(addr string) (*node, shard.Part, error) {
	n, sub, err := b.find(addr)
	if err != nil {
		return nil, 0, err
	}
	if n.kind == KindTopic && sub == entity.MainQueue {
		return nil, 0, fmt.Errorf("%w: %q is a topic; receive from its subscriptions", ErrNotAllowed, n.path)
	}
	n.touch(b.clock.Now())
	return n, shard.Part(sub), nil
}

// sorted returns all nodes by path.
func (b *Broker) sorted() []*node {
	b.mu.RLock()
	ns := make([]*node, 0, len(b.nodes))
	for _, n := range b.nodes {
		ns = append(ns, n)
	}
	b.mu.RUnlock()
	slices.SortFunc(ns, func(x, y *node) int {
		return strings.Compare(entity.Key(x.path), entity.Key(y.path))
	})
	return ns
}

// change runs fn while no other change of entities is under way.
func (b *Broker) change(ctx context.Context, fn func() error) error {
	select {
	case <-b.admin:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { b.admin <- struct{}{} }()
	if err := guarded(ctx); err != nil {
		return err
	}
	return fn()
}

// guardKey is the context key of what Guard was given.
type guardKey struct{}

// Guard returns a context for changes of entities that are made only if check returns
// nil. It is called when the turn of a change has come, in the goroutine of the caller,
// and no entity changes before the change is made: what check finds out about rights
// holds for it. A Redrive asks before each of its steps.
func Guard(ctx context.Context, check func() error) context.Context {
	return context.WithValue(ctx, guardKey{}, check)
}

// guarded asks the check in a context, if there is one.
func guarded(ctx context.Context) error {
	if check, ok := ctx.Value(guardKey{}).(func() error); ok {
		return check()
	}
	return nil
}

// create defines an entity in its shard and makes it known. It is called within
// change.
func (b *Broker) create(n *node, def *definition) error {
	if b.node(n.path) != nil {
		return fmt.Errorf("%w: %q", ErrExists, n.path)
	}
	var topic *definition
	if n.topic != nil {
		topic = n.topic.def.Load()
	} else if err := b.checkEntities(); err != nil {
		return err
	}
	def.Created = b.clock.Now().UTC()
	def.Updated = def.Created
	if err := def.derive(topic, nil, policy.Parse); err != nil {
		return invalid(err)
	}
	def.Classified = def.PolicyRevision // there is nothing to classify yet
	meta, err := def.encode()
	if err != nil {
		return err
	}
	if err := limits.CheckBytes("definition", len(meta), limits.Definition); err != nil {
		return invalid(err)
	}
	n.id, err = shard.Finish(n.shard, shard.Define{
		Definition: shard.Definition{Name: n.path, Meta: meta, Sessions: def.queue.RequiresSession},
		Configs:    def.configs(),
	})
	if err != nil {
		return fmt.Errorf("create %q: %w", n.path, translate(err))
	}
	n.def.Store(def)
	b.mu.Lock()
	b.nodes[entity.Key(n.path)] = n
	b.mu.Unlock()
	b.movers.watch(n)
	b.movers.changed(n)
	return nil
}

// redefine makes a changed definition durable and then effective. It is called
// within change.
func (b *Broker) redefine(n *node, def definition) error {
	var topic *definition
	if n.topic != nil {
		topic = n.topic.def.Load()
	}
	before := n.def.Load()
	def.Updated = b.clock.Now().UTC()
	if err := def.derive(topic, before, policy.Parse); err != nil {
		return invalid(err)
	}
	meta, err := def.encode()
	if err != nil {
		return err
	}
	if err := limits.CheckBytes("definition", len(meta), limits.Definition); err != nil {
		if was, _ := before.encode(); len(meta) > len(was) { // else it was so before, and gets better
			return invalid(err)
		}
	}
	if _, err := shard.Finish(n.shard, shard.Configure{ID: n.id, Meta: meta, Configs: def.configs()}); err != nil {
		return fmt.Errorf("update %q: %w", n.path, translate(err))
	}
	n.def.Store(&def)
	b.movers.watch(n)
	b.movers.changed(n)
	if def.Classified != def.PolicyRevision {
		b.reclasser.add(n)
	}
	if !sameAuthorization(def.authorization(), before.authorization()) {
		b.tellChanged(n)
	}
	return nil
}

// remove drops entities that live in one shard. It is called within change.
func (b *Broker) remove(ns ...*node) error {
	o := shard.Drop{}
	for _, n := range ns {
		o.IDs = append(o.IDs, n.id)
	}
	if _, err := shard.Finish(ns[0].shard, o); err != nil {
		return fmt.Errorf("delete %q: %w", ns[0].path, err)
	}
	b.forget(ns)
	return nil
}

// forget takes entities that were dropped out of the catalog.
func (b *Broker) forget(ns []*node) {
	b.mu.Lock()
	for _, n := range ns {
		delete(b.nodes, entity.Key(n.path))
	}
	b.mu.Unlock()
	for _, n := range ns {
		b.movers.unwatch(n)
	}
	b.tellChanged(ns[0]) // the others are its subscriptions
}

// invalid says that a definition cannot be accepted, and every reason.
func invalid(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrInvalid) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}
