// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/clock"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/turns"
)

// Catalog has every entity of a namespace.
type Catalog struct {
	shards   []*queueserver.Shard
	store    Store
	logs     Logs // of hubs; nil without any
	clock    *clock.Clock
	log      *slog.Logger
	observer Observer
	changed  atomic.Pointer[func(name string)]
	sends    sync.Pool // of *sendRequest

	// longKeys has entities rejected whose keys are too short; set before the catalog is
	// used.
	longKeys bool

	// admin is for those who change entities, one at a time. It is not a mutex because it is
	// held across writes to the disk.
	admin *turns.Turns
	// compiling is for those who compile what clients have sent, before it is charged.
	compiling *turns.Turns
	// evaluating is for those whose messages take a processor for long.
	evaluating *turns.Turns

	mu    sync.RWMutex
	nodes map[string]*Entity // guarded by mu; by entity.Key of the path
	count map[Kind]int       // guarded by mu; of nodes
	list  []*Entity          // guarded by mu; nodes by path; nil after a change; never changes
	byID  map[nodeID]*Entity // guarded by mu; of nodes

	// withoutTopic are subscriptions that are not served, since their topic is lost.
	withoutTopic map[string][]*Entity // guarded by admin; by entity.Key of the topic

	memory  *budget.Account // of all definitions
	sharing bool            // the change under way is asked for by a key that does not manage the namespace; guarded by admin
}

// nodeID identifies an entity for its shard.
type nodeID struct {
	shard *queueserver.Shard
	id    queueserver.ID
}

// Observer is notified of entities that have changed, afterwards and one at a time.
type Observer interface {
	// Changed reports an entity that is new or has another definition.
	Changed(n *Entity)
	// Removed reports an entity that was deleted.
	Removed(n *Entity)
}

// Open returns the catalog of the entities in the shards. Without logs no event hub can be
// created.
func Open(shards []*queueserver.Shard, logs Logs, clock *clock.Clock, log *slog.Logger, o Observer) (*Catalog, error) {
	c := &Catalog{
		shards: shards, store: shardStore{}, logs: logs, clock: clock, log: log, observer: o,
		memory: budget.NoLimit(), admin: turns.New(1, 1), compiling: turns.New(1, 1), evaluating: turns.New(max(1, runtime.GOMAXPROCS(0)/2), 1),
		nodes: make(map[string]*Entity), count: make(map[Kind]int), byID: make(map[nodeID]*Entity), withoutTopic: make(map[string][]*Entity),
	}
	for _, s := range shards {
		if err := c.recoverShard(s); err != nil {
			return nil, err
		}
	}
	for _, n := range c.nodes {
		if n.Kind == KindTopic {
			c.reroute(n)
		}
	}
	return c, nil
}

// shardFor returns the shard for an entity: that of its queue's or topic's name.
func (c *Catalog) shardFor(name string) *queueserver.Shard {
	h := fnv.New32a()
	h.Write([]byte(entity.Key(name)))
	return c.shards[h.Sum32()%uint32(len(c.shards))]
}

// Address is the result of resolving a name.
type Address struct {
	Path     string // of the entity, as its creator spelled it
	Kind     Kind
	SubQueue entity.SubQueue
	// ID distinguishes the entity from an earlier or later one of the same name.
	ID uint64
}

// Resolve finds the entity that an address names.
func (c *Catalog) Resolve(addr string) (Address, error) {
	n, p, err := c.lookup(addr)
	if err != nil {
		return Address{}, err
	}
	return Address{Path: n.Path, Kind: n.Kind, SubQueue: p.SubQueue, ID: uint64(n.ID)}, nil
}

// Authorization returns the access rules of a queue, topic or hub, and its ID as in
// Address.
func (c *Catalog) Authorization(name string) (id uint64, rules entity.AuthorizationRules, ok bool) {
	n := c.Entity(name)
	if n == nil {
		return 0, nil, false
	}
	return uint64(n.ID), n.Definition().authorization(), true
}

// authorization returns the access rules; a subscription has those of its topic.
func (d *Definition) authorization() entity.AuthorizationRules {
	switch d.Kind {
	case KindQueue:
		return d.Queue.AuthorizationRules
	case KindTopic:
		return d.Topic.AuthorizationRules
	case KindHub:
		return d.Hub.AuthorizationRules
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
// deleted, with the name of the queue, topic or hub, or of the topic of a subscription, as
// [entity.Key] writes it. It is called one at a time, afterwards, and must not block.
// There is one fn, set before the broker runs.
func (c *Catalog) OnChange(fn func(name string)) { c.changed.Store(&fn) }

func (c *Catalog) notifyChanged(n *Entity) {
	if fn := c.changed.Load(); fn != nil {
		(*fn)(entity.Owner(n.Path))
	}
}

// Find returns the queue, topic or subscription that an address names, and which of its
// queues. An event hub is rejected: it has no messages.
func (c *Catalog) Find(addr string) (*Entity, entity.SubQueue, error) {
	n, p, err := c.lookup(addr)
	if err != nil {
		return nil, 0, err
	}
	if n.Kind == KindHub {
		return nil, 0, fmt.Errorf("%w: %q is an event hub, not a queue or topic", ErrNotAllowed, n.Path)
	}
	return n, p.SubQueue, nil
}

// lookup returns the entity of any kind that an address names. The $management node of an
// entity is not the entity: it has requests, and no messages.
func (c *Catalog) lookup(addr string) (*Entity, entity.Path, error) {
	p, err := entity.ParsePath(addr)
	if err != nil {
		return nil, p, fmt.Errorf("%w: %q: %w", ErrNotFound, addr, err)
	}
	if p.Management {
		return nil, p, fmt.Errorf("%w: %q takes requests and no messages", ErrNotAllowed, addr)
	}
	n := c.Entity(p.Queue())
	if n == nil {
		return nil, p, fmt.Errorf("%w: %q", ErrNotFound, addr)
	}
	return n, p, checkHubPath(n, p)
}

// Entity returns the entity of that path, nil if there is none.
func (c *Catalog) Entity(path string) *Entity {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.nodes[entity.Key(path)]
}

// Readable returns the entity and sub-queue of an address that can be received from, and
// marks it used. Of a topic that is its dead-letter queue.
func (c *Catalog) Readable(addr string) (*Entity, queueserver.SubQueue, error) {
	n, sub, err := c.Find(addr)
	if err != nil {
		return nil, 0, err
	}
	if n.Kind == KindTopic && sub == entity.MainQueue {
		return nil, 0, fmt.Errorf("%w: %q is a topic; receive from its subscriptions", ErrNotAllowed, n.Path)
	}
	n.Touch(c.clock.Now())
	return n, queueserver.SubQueue(sub), nil
}

// Entities returns all entities by path. The list must not be changed.
func (c *Catalog) Entities() []*Entity {
	c.mu.RLock()
	list := c.list
	c.mu.RUnlock()
	if list != nil {
		return list
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.list == nil {
		c.list = slices.SortedFunc(maps.Values(c.nodes), byPath)
	}
	return c.list
}

// Count returns how many entities of a kind there are.
func (c *Catalog) Count(k Kind) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.count[k]
}

// Change runs fn while no other change of entities is under way.
func (c *Catalog) Change(ctx context.Context, fn func() error) error {
	leave, err := c.admin.Take(ctx, ownerOf(ctx))
	if err != nil {
		return err
	}
	defer leave()
	if err := Guarded(ctx); err != nil {
		return err
	}
	c.sharing = shares(ctx)
	return fn()
}

// Compiling runs fn, which compiles something that a client has sent, while nobody else does: how
// much memory that takes is known, and charged, only afterwards.
func (c *Catalog) Compiling(ctx context.Context, fn func() error) error {
	leave, err := c.compiling.Take(ctx, ownerOf(ctx))
	if err != nil {
		return err
	}
	defer leave()
	return fn()
}

// ownerKey is the context key of the owner of By.
type ownerKey struct{}

// By returns a context for what somebody has asked for. Those who change entities, or have
// something compiled, take turns, however much one of them asks for.
func By(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// ownerOf returns who has asked for something; empty is the broker itself.
func ownerOf(ctx context.Context) string {
	owner, _ := ctx.Value(ownerKey{}).(string)
	return owner
}

// managerKey is the context key of Managing.
type managerKey struct{}

// Managing returns a context for what a key asks for that manages the namespace: its definitions
// may use all memory that there is for them, not only the share of an entity.
func Managing(ctx context.Context) context.Context {
	return context.WithValue(ctx, managerKey{}, true)
}

// shares reports whether definitions have the share of an entity only.
func shares(ctx context.Context) bool {
	return ownerOf(ctx) != "" && ctx.Value(managerKey{}) == nil
}

// guardKey is the context key of the check of Guard.
type guardKey struct{}

// Guard returns a context for changes of entities that are made only if check returns
// nil. It is called on the goroutine of the caller, while no other change is under way:
// the rights that check finds are those at the time of the change. A Redrive calls it
// before each of its steps.
func Guard(ctx context.Context, check func() error) context.Context {
	return context.WithValue(ctx, guardKey{}, check)
}

type chargeKey struct{}

// Charging returns a context whose operations call charge before they load bodies of
// messages, with how many bytes of them they will have in memory at a time. They load
// nothing after an error, and return it.
func Charging(ctx context.Context, charge func(bytes int64) error) context.Context {
	return context.WithValue(ctx, chargeKey{}, charge)
}

// Charge charges bytes of bodies, if the context has somebody to charge.
func Charge(ctx context.Context, bytes int64) error {
	if charge, ok := ctx.Value(chargeKey{}).(func(int64) error); ok {
		return charge(bytes)
	}
	return nil
}

// Guarded calls the check of a context, if there is one.
func Guarded(ctx context.Context) error {
	if check, ok := ctx.Value(guardKey{}).(func() error); ok {
		return check()
	}
	return nil
}

// create defines an entity in its shard and adds it to the catalog. It is called within
// Change.
func (c *Catalog) create(n *Entity, def *Definition) error {
	p, err := c.prepare(n, def, 0)
	if err != nil {
		return err
	}
	p.store(c)
	return c.finish(p)
}

// creation is an entity that is being created.
type creation struct {
	n     *Entity
	def   *Definition
	meta  []byte
	cost  int64
	taken int64 // of the memory for definitions
	err   error // of storing it
}

// prepare checks a new entity and takes memory for it. So many others are being created at
// the same time.
func (c *Catalog) prepare(n *Entity, def *Definition, others int) (*creation, error) {
	var topic *Definition
	if n.Topic != nil {
		topic = n.Topic.Definition()
		if c.Entity(n.Path) != nil {
			return nil, fmt.Errorf("%w: %q", ErrExists, n.Path)
		}
	} else if err := c.checkNew(n.Path, others); err != nil {
		return nil, err
	}
	def.Created = c.clock.Now().UTC()
	def.Updated = def.Created
	if err := c.derive(n, def, topic, nil); err != nil {
		return nil, err
	}
	def.Classified = def.PolicyRevision // it has no messages to classify
	meta, err := def.record()
	if err != nil {
		return nil, err
	}
	if err := limits.CheckBytes("definition", len(meta), limits.Definition); err != nil {
		return nil, Invalid(err)
	}
	p := &creation{n: n, def: def, meta: meta, cost: def.cost(len(meta))}
	p.taken, err = c.takeMemory(n, p.cost)
	return p, err
}

// store makes the entity durable. Several may do so at a time.
func (p *creation) store(c *Catalog) {
	p.n.ID, p.err = c.store.Create(p.n, Stored{Meta: p.meta, Sessions: p.def.Properties.RequiresSession, Configs: p.def.configs()})
}

// finish adds an entity that was stored to the catalog.
func (c *Catalog) finish(p *creation) error {
	if p.err != nil {
		c.memory.Release(p.taken)
		return fmt.Errorf("create %q: %w", p.n.Path, Translate(p.err))
	}
	c.settleMemory(p.n, p.taken, p.cost)
	p.n.def.Store(p.def)
	c.add(p.n)
	c.observer.Changed(p.n)
	return nil
}

// add makes an entity known.
func (c *Catalog) add(n *Entity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n.key = entity.Key(n.Path)
	c.nodes[n.key] = n
	c.list = nil
	c.byID[nodeID{n.Shard, n.ID}] = n
	c.count[n.Kind]++
	if t := n.Topic; t != nil {
		i, _ := slices.BinarySearchFunc(t.subs, n, byPath)
		t.subs = slices.Insert(t.subs, i, n)
	}
}

func byPath(x, y *Entity) int { return strings.Compare(x.key, y.key) }

// checkNew rejects a queue, topic or hub that exists, or would be one too many together with
// others that are being created.
func (c *Catalog) checkNew(name string, others int) error {
	if n := c.Entity(name); n != nil {
		return fmt.Errorf("%w: %q is a %s", ErrExists, n.Path, n.Kind)
	}
	return c.checkEntities(others)
}

// redefine makes a changed definition durable and then effective. It is called within
// Change.
func (c *Catalog) redefine(n *Entity, def Definition) error {
	return c.redefineAfter(n, def, func() error { return nil })
}

// redefineAfter is redefine with something that is done in between: when the definition is
// durable, before anybody sees it. If that fails, the definition is effective nevertheless.
func (c *Catalog) redefineAfter(n *Entity, def Definition, prepare func() error) error {
	r, err := c.prepareChange(n, def)
	if err != nil {
		return err
	}
	r.store(c)
	return c.finishChange(r, prepare)
}

// redefineAll makes the definitions of many entities anew, because those of others have changed.
// Many share a write to the disk. After an error the rest stays as it is.
func (c *Catalog) redefineAll(ns []*Entity) error {
	for part := range slices.Chunk(ns, batch) {
		var wg sync.WaitGroup
		var begun []*redefinition
		var failed error
		for _, n := range part {
			r, err := c.prepareChange(n, *n.Definition())
			if failed = err; err != nil {
				break
			}
			begun = append(begun, r)
			wg.Go(func() { r.store(c) })
		}
		wg.Wait()
		for _, r := range begun {
			failed = cmp.Or(failed, c.finishChange(r, func() error { return nil }))
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// derive derives a changed definition of an entity. Much of it is compiled while nobody else
// compiles anything: that takes a processor.
func (c *Catalog) derive(n *Entity, def, topic, before *Definition) error {
	if def.isLarge() {
		defer c.compiling.Wait(changing)()
	}
	if err := def.derive(topic, before, policy.Parse, c.available(n)); err != nil {
		return c.underivable(n, err)
	}
	return nil
}

// changing owns what is compiled within Change; there is one at a time.
const changing = "$change"

// redefinition is an entity whose definition is being changed.
type redefinition struct {
	n     *Entity
	def   *Definition
	meta  []byte
	cost  int64
	taken int64 // of the memory for definitions
	err   error // of storing it
}

// prepareChange checks a changed definition and takes memory for it.
func (c *Catalog) prepareChange(n *Entity, def Definition) (*redefinition, error) {
	var topic *Definition
	if n.Topic != nil {
		topic = n.Topic.Definition()
	}
	before := n.Definition()
	def.Updated = c.clock.Now().UTC()
	if err := c.derive(n, &def, topic, before); err != nil {
		return nil, err
	}
	meta, err := def.record()
	if err != nil {
		return nil, err
	}
	if err := limits.CheckBytes("definition", len(meta), limits.Definition); err != nil {
		if was, _ := before.encode(); len(meta) > len(was) { // a definition that shrinks is accepted
			return nil, Invalid(err)
		}
	}
	r := &redefinition{n: n, def: &def, meta: meta, cost: def.cost(len(meta))}
	r.taken, err = c.takeMemory(n, r.cost)
	return r, err
}

// store makes the definition durable. Several may do so at a time.
func (r *redefinition) store(c *Catalog) {
	r.err = c.store.Update(r.n, Stored{Meta: r.meta, Configs: r.def.configs()})
}

// finishChange makes a definition effective that was stored, when prepare is done.
func (c *Catalog) finishChange(r *redefinition, prepare func() error) error {
	if r.err != nil {
		c.memory.Release(r.taken)
		return fmt.Errorf("update %q: %w", r.n.Path, Translate(r.err))
	}
	c.settleMemory(r.n, r.taken, r.cost)
	prepared := prepare()
	before := r.n.Definition()
	r.n.def.Store(r.def)
	c.observer.Changed(r.n)
	if !sameAuthorization(r.def.authorization(), before.authorization()) {
		c.notifyChanged(r.n)
	}
	return prepared
}

// remove drops entities of one shard. It is called within Change.
func (c *Catalog) remove(ns ...*Entity) error {
	if err := c.store.Delete(ns...); err != nil {
		return fmt.Errorf("delete %q: %w", ns[0].Path, err)
	}
	c.forget(ns)
	return nil
}

// forget removes entities that were dropped from the catalog.
func (c *Catalog) forget(ns []*Entity) {
	c.mu.Lock()
	c.list = nil
	for _, n := range ns {
		delete(c.nodes, entity.Key(n.Path))
		delete(c.byID, nodeID{n.Shard, n.ID})
		c.count[n.Kind]--
		if t := n.Topic; t != nil {
			t.subs = slices.DeleteFunc(t.subs, func(sub *Entity) bool { return sub == n })
		}
	}
	c.mu.Unlock()
	for _, n := range ns {
		c.memory.Release(n.charged)
		n.charged = 0
		c.observer.Removed(n)
		n.forgetRules()
	}
	c.notifyChanged(ns[0]) // the others are its subscriptions
}

// Invalid returns an ErrInvalid with all reasons.
func Invalid(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrInvalid) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}

// ByID returns an entity by its id, nil if it was deleted.
func (c *Catalog) ByID(s *queueserver.Shard, id queueserver.ID) *Entity {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byID[nodeID{s, id}]
}

// Writable returns the entity of an address that can be sent to.
func (c *Catalog) Writable(addr string) (*Entity, error) {
	n, sub, err := c.Find(addr)
	switch {
	case err != nil:
		return nil, err
	case sub != entity.MainQueue:
		return nil, fmt.Errorf("%w: nothing can be sent to the dead letters of %q", ErrNotAllowed, n.Path)
	case n.Kind == KindSubscription:
		return nil, fmt.Errorf("%w: %q is a subscription; send to its topic", ErrNotAllowed, n.Path)
	}
	return n, nil
}
