// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"strings"
	"sync"

	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/entity"
)

// watchers knows which connections have grants or links at which queue or topic, so
// that those are notified when it changes, and no others.
type watchers struct {
	mu    sync.Mutex
	conns map[string]map[*Conn]struct{} // guarded by mu; by entity.Owner
}

func (w *watchers) add(name string, c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conns == nil {
		w.conns = map[string]map[*Conn]struct{}{}
	}
	if w.conns[name] == nil {
		w.conns[name] = map[*Conn]struct{}{}
	}
	w.conns[name][c] = struct{}{}
}

func (w *watchers) remove(name string, c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns[name], c)
	if len(w.conns[name]) == 0 {
		delete(w.conns, name)
	}
}

// changed has the connections at an entity look at their grants and links again. It
// is called by the broker.
func (w *watchers) changed(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns[name] {
		c.review()
	}
}

// Review has every connection look at its grants again, and what has outlived its
// connection: the rules of the namespace have changed.
func (s *Service) Review() {
	for _, x := range s.registry.all() {
		x.review()
	}
	s.broker.ReviewMembers()
}

// review has the connection look at its grants and links, soon and once for any
// number of calls before it does. It may be called from any goroutine.
func (c *Conn) review() {
	if c.reviewing.CompareAndSwap(false, true) {
		c.do(func() {
			c.reviewing.Store(false)
			c.grants.review()
		})
	}
}

// watch has the connection notified of changes of the queue or topic that a path belongs
// to. A caller that reads the entity after this misses none.
func (c *Conn) watch(path string) {
	name := entity.Owner(path)
	if _, ok := c.watched[name]; ok || name == "" {
		return
	}
	if len(c.watched) >= c.watchMost {
		// Names that were asked for and not found, or not any more, must not add up.
		c.unwatch()
		c.watchMost = max(2*len(c.watched), minWatched)
	}
	name = strings.Clone(name) // not to keep the frame or request for it
	c.watched[name] = struct{}{}
	c.svc.watchers.add(name, c)
}

// minWatched is how many entities are watched before the first look at which are
// needed.
const minWatched = 64

// unwatch forgets the entities at which nothing is left.
func (c *Conn) unwatch() {
	if len(c.watched) == 0 {
		return
	}
	used := map[string]struct{}{}
	for audience := range c.grants.byAudience {
		used[entity.Owner(audience)] = struct{}{}
	}
	for _, a := range c.links {
		for _, path := range a.node.Paths() {
			used[entity.Owner(path)] = struct{}{}
		}
	}
	for name := range c.watched {
		if _, ok := used[name]; !ok {
			c.svc.watchers.remove(name, c)
			delete(c.watched, name)
		}
	}
}

// unwatchAll forgets all of them.
func (c *Conn) unwatchAll() {
	for name := range c.watched {
		c.svc.watchers.remove(name, c)
	}
	clear(c.watched)
}

// identify returns the ID of the entity at a path, which tells it from others that
// have its name before or after it; zero for a path that is none's: the namespace,
// $cbs, a dynamic node. It may be called from any goroutine.
func (s *Service) identify(path string) (id uint64, err error) {
	if wire.IsManagement(path) {
		path = wire.ManagedEntity(path)
	}
	if path == "" || path == wire.CBS || wire.IsDynamicNode(path) {
		return 0, nil
	}
	_, id, err = s.find(path)
	return id, err
}

func (c *Conn) identify(path string) (id uint64, err error) { return c.svc.identify(path) }

// IsStill reports that the entity at a path is not the one with that ID any more, as
// a broker.ErrNotFound.
func (c *Conn) IsStill(path string, id uint64) error {
	now, err := c.identify(path)
	if err == nil && now != id {
		err = errReplaced
	}
	return err
}
