// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/streamserver"
)

// Logs has the events of hubs: a log for each. The name of a log is never used again.
type Logs interface {
	// Create makes an empty log and serves it. It leaves nothing behind if it fails, nor if
	// the process ends before the definition of the hub is durable.
	Create(ctx context.Context, log string, set streamserver.Settings) error
	// Keep makes it durable that a log has a definition.
	Keep(log string) error
	// Configure changes the settings of a log. Partitions are never removed.
	Configure(ctx context.Context, log string, set streamserver.Settings) error
	// Condemn makes it durable that a log goes with its definition, should a crash come
	// before Remove.
	Condemn(log string) error
	// Remove ends a log and deletes its events.
	Remove(ctx context.Context, log string) error
}

// LogSettings returns the settings of the log of a hub.
func (d *Definition) LogSettings() streamserver.Settings {
	set := streamserver.Settings{Partitions: d.Hub.PartitionCount, RetainBytes: d.Hub.MaxPartitionSizeInMegabytes << 20}
	if d.Hub.MessageRetention < entity.Forever {
		set.RetainFor = d.Hub.MessageRetention.Std()
	}
	return set
}

// newLog returns the name of a log that never was. The name of the hub is in it for those
// who look at the directory.
func newLog(hub string) string {
	const longest = 40
	name := strings.ReplaceAll(entity.Key(hub), "/", "-")
	id := newID()
	return name[:min(len(name), longest)] + "-" + hex.EncodeToString(id[:])
}

// CreateHub creates an event hub and returns it with its defaults filled in.
func (c *Catalog) CreateHub(ctx context.Context, h entity.Hub) (entity.Hub, error) {
	h = h.WithDefaults()
	if err := h.Validate(); err != nil {
		return entity.Hub{}, Invalid(err)
	}
	err := c.Change(ctx, func() error {
		if err := c.checkKeys(h, nil); err != nil {
			return err
		}
		if c.logs == nil {
			return fmt.Errorf("%w: this broker stores no events, so it has no event hubs", ErrNotAllowed)
		}
		if err := c.checkNew(h.Name, 0); err != nil { // before a log is made for nothing
			return err
		}
		if n := c.Count(KindHub); n >= limits.Hubs {
			return fmt.Errorf("%w: there are %d event hubs, which is the most there can be", ErrQuota, n)
		}
		h.ConsumerGroups = c.dated(h.ConsumerGroups, nil)
		n := &Entity{Kind: KindHub, Path: h.Name, Shard: c.shardFor(h.Name)}
		def := &Definition{Kind: KindHub, Hub: &h, Log: newLog(h.Name)}
		if err := c.logs.Create(ctx, def.Log, def.LogSettings()); err != nil {
			return fmt.Errorf("create %q: %w", h.Name, err)
		}
		err := c.create(n, def)
		// Of a shard that has stopped, nobody knows whether the definition is durable. A log
		// without a definition is harmless, a definition without a log is not.
		if err != nil && !errors.Is(err, ErrStopping) && !errors.Is(err, ErrMoved) {
			c.removeLog(ctx, h.Name, def.Log)
		}
		if err == nil {
			if err := c.logs.Keep(def.Log); err != nil { // the next start does it
				c.log.Warn("the log of a new hub is still marked as unfinished", "entity", h.Name, "err", err)
			}
		}
		return err
	})
	return h, err
}

// UpdateHub changes an event hub; a change that is not possible is an entity.UpdateError.
// Without ConsumerGroups they stay as they are, and so do the partitions without a number.
func (c *Catalog) UpdateHub(ctx context.Context, h entity.Hub) (entity.Hub, error) {
	partitions := h.PartitionCount
	h = h.WithDefaults()
	if err := h.Validate(); err != nil {
		return entity.Hub{}, Invalid(err)
	}
	err := c.Change(ctx, func() error {
		n, err := c.kind(h.Name, KindHub)
		if err != nil {
			return err
		}
		def := *n.Definition()
		h.PartitionCount = cmp.Or(partitions, def.Hub.PartitionCount)
		if err := def.Hub.CheckUpdate(h); err != nil {
			return Invalid(err)
		}
		if err := c.checkKeys(h, def.Hub.AuthorizationRules); err != nil {
			return err
		}
		before := def.LogSettings()
		h.Name = def.Hub.Name
		if h.ConsumerGroups == nil {
			h.ConsumerGroups = def.Hub.ConsumerGroups
		} else {
			h.ConsumerGroups = c.dated(h.ConsumerGroups, def.Hub.ConsumerGroups)
		}
		def.Hub = &h
		err = c.redefineAfter(n, def, func() error {
			if c.logs == nil || def.LogSettings() == before {
				return nil
			}
			// A crash before this is harmless: a log that is opened is configured by the
			// definition. Senders must not choose a partition that the log does not have yet.
			if err := c.logs.Configure(context.WithoutCancel(ctx), def.Log, def.LogSettings()); err != nil {
				return fmt.Errorf("%q is changed, but its log is not before the next start: %w", n.Path, err)
			}
			return nil
		})
		c.notifyChanged(n) // groups may be gone, or the hub disabled
		return err
	})
	return h, err
}

// Hub returns the definition of an event hub.
func (c *Catalog) Hub(name string) (entity.Hub, error) {
	n, err := c.kind(name, KindHub)
	if err != nil {
		return entity.Hub{}, err
	}
	return *n.Definition().Hub, nil
}

// Hubs returns the definitions of all event hubs, by name.
func (c *Catalog) Hubs() []entity.Hub {
	var hs []entity.Hub
	for _, n := range c.Entities() {
		if n.Kind == KindHub {
			hs = append(hs, *n.Definition().Hub)
		}
	}
	return hs
}

// DeleteHub removes an event hub with all its events.
func (c *Catalog) DeleteHub(ctx context.Context, name string) error {
	return c.Change(ctx, func() error {
		n, err := c.kind(name, KindHub)
		if err != nil {
			return err
		}
		log := n.Definition().Log
		if c.logs != nil {
			if err := c.logs.Condemn(log); err != nil { // on a full disk, which this is to help
				c.log.Warn("events of a hub that is being deleted stay on disk if the broker is killed now", "entity", n.Path, "err", err)
			}
		}
		if err := c.remove(n); err != nil {
			return err
		}
		c.removeLog(ctx, n.Path, log)
		return nil
	})
}

// removeLog removes a log that no hub has. The hub is gone in any case.
func (c *Catalog) removeLog(ctx context.Context, hub, log string) {
	if c.logs == nil {
		return
	}
	if err := c.logs.Remove(context.WithoutCancel(ctx), log); err != nil {
		c.log.Warn("events of a deleted hub are still on disk", "entity", hub, "err", err)
	}
}

// FindHub returns the event hub of an address, and the address taken apart. A consumer
// group in it exists; a partition need not.
func (c *Catalog) FindHub(addr string) (*Entity, entity.Path, error) {
	n, p, err := c.lookup(addr)
	if err == nil && n.Kind != KindHub {
		err = fmt.Errorf("%w: %q is a %s, not an event hub", ErrNotAllowed, n.Path, n.Kind)
	}
	return n, p, err
}

// checkHubPath rejects an address below an event hub if the entity is none, or has no
// such consumer group.
func checkHubPath(n *Entity, p entity.Path) error {
	switch {
	case n.Kind == KindHub && p.SubQueue != entity.MainQueue:
		return fmt.Errorf("%w: %q: an event hub has no dead letters", ErrNotFound, p.String())
	case !p.OfHub():
		return nil
	case n.Kind != KindHub:
		return fmt.Errorf("%w: %q: %q is a %s, not an event hub", ErrNotFound, p.String(), n.Path, n.Kind)
	case p.Group != "":
		_, err := group(n, p.Group)
		return err
	}
	return nil
}

// CreateConsumerGroup adds a consumer group to an event hub.
func (c *Catalog) CreateConsumerGroup(ctx context.Context, hub string, g entity.ConsumerGroup) (entity.ConsumerGroup, error) {
	err := c.changeGroups(ctx, hub, g, func(n *Entity, groups []entity.ConsumerGroup) ([]entity.ConsumerGroup, error) {
		if _, err := group(n, g.Name); err == nil {
			return nil, fmt.Errorf("%w: consumer group %q of %q", ErrExists, g.Name, n.Path)
		}
		if len(groups) >= limits.ConsumerGroups {
			return nil, fmt.Errorf("%w: event hub %q has %d consumer groups, which is the most it can have", ErrQuota, n.Path, len(groups))
		}
		g = c.dated([]entity.ConsumerGroup{g}, nil)[0]
		return append(groups, g), nil
	})
	return g, err
}

// UpdateConsumerGroup changes a consumer group.
func (c *Catalog) UpdateConsumerGroup(ctx context.Context, hub string, g entity.ConsumerGroup) (entity.ConsumerGroup, error) {
	err := c.changeGroups(ctx, hub, g, func(n *Entity, groups []entity.ConsumerGroup) ([]entity.ConsumerGroup, error) {
		was, err := group(n, g.Name)
		if err != nil {
			return nil, err
		}
		g.Name = was.Name
		g = c.dated([]entity.ConsumerGroup{g}, []entity.ConsumerGroup{was})[0]
		if i := groupIndex(groups, g.Name); i >= 0 {
			groups[i] = g
			return groups, nil
		}
		return append(groups, g), nil // $Default, which was not listed
	})
	return g, err
}

// DeleteConsumerGroup removes a consumer group. The first one of a hub cannot be removed.
func (c *Catalog) DeleteConsumerGroup(ctx context.Context, hub, name string) error {
	g := entity.ConsumerGroup{Name: name}
	return c.changeGroups(ctx, hub, g, func(n *Entity, groups []entity.ConsumerGroup) ([]entity.ConsumerGroup, error) {
		if strings.EqualFold(name, entity.DefaultGroup) {
			return nil, fmt.Errorf("%w: every event hub has the consumer group %s; it cannot be deleted", ErrNotAllowed, entity.DefaultGroup)
		}
		if _, err := group(n, name); err != nil {
			return nil, err
		}
		i := groupIndex(groups, name)
		return slices.Delete(groups, i, i+1), nil
	})
}

// changeGroups replaces the consumer groups of a hub by those that change returns. It is
// given a copy.
func (c *Catalog) changeGroups(ctx context.Context, hub string, g entity.ConsumerGroup,
	change func(n *Entity, groups []entity.ConsumerGroup) ([]entity.ConsumerGroup, error)) error {
	if err := g.Validate(); err != nil {
		return Invalid(err)
	}
	return c.Change(ctx, func() error {
		n, err := c.kind(hub, KindHub)
		if err != nil {
			return err
		}
		def := *n.Definition()
		h := *def.Hub
		if h.ConsumerGroups, err = change(n, slices.Clone(h.ConsumerGroups)); err != nil {
			return err
		}
		sortGroups(h.ConsumerGroups)
		fewer := len(h.ConsumerGroups) < len(def.Hub.ConsumerGroups)
		def.Hub = &h
		if err := c.redefine(n, def); err != nil {
			return err
		}
		if fewer {
			c.notifyChanged(n) // for the readers of the group that was deleted
		}
		return nil
	})
}

// ConsumerGroup returns a consumer group of an event hub.
func (c *Catalog) ConsumerGroup(hub, name string) (entity.ConsumerGroup, error) {
	n, err := c.kind(hub, KindHub)
	if err != nil {
		return entity.ConsumerGroup{}, err
	}
	return group(n, name)
}

// ConsumerGroups returns the consumer groups of an event hub, by name.
func (c *Catalog) ConsumerGroups(hub string) ([]entity.ConsumerGroup, error) {
	n, err := c.kind(hub, KindHub)
	if err != nil {
		return nil, err
	}
	return groups(n), nil
}

// groups returns the consumer groups of a hub, with the one that every hub has.
func groups(n *Entity) []entity.ConsumerGroup {
	def := n.Definition()
	gs := slices.Clone(def.Hub.ConsumerGroups)
	if groupIndex(gs, entity.DefaultGroup) < 0 {
		gs = append(gs, def.defaultGroup())
	}
	sortGroups(gs)
	return gs
}

func group(n *Entity, name string) (entity.ConsumerGroup, error) {
	def := n.Definition()
	gs := def.Hub.ConsumerGroups
	if i := groupIndex(gs, name); i >= 0 {
		return gs[i], nil
	}
	if strings.EqualFold(name, entity.DefaultGroup) {
		return def.defaultGroup(), nil
	}
	return entity.ConsumerGroup{}, fmt.Errorf("%w: consumer group %q of %q", ErrNotFound, name, n.Path)
}

// defaultGroup is the group that every hub has, of a hub that does not list it.
func (d *Definition) defaultGroup() entity.ConsumerGroup {
	return entity.ConsumerGroup{Name: entity.DefaultGroup, CreatedAt: d.Created, UpdatedAt: d.Created}
}

func groupIndex(groups []entity.ConsumerGroup, name string) int {
	name = entity.Key(name)
	return slices.IndexFunc(groups, func(g entity.ConsumerGroup) bool { return entity.Key(g.Name) == name })
}

func sortGroups(gs []entity.ConsumerGroup) {
	slices.SortFunc(gs, func(x, y entity.ConsumerGroup) int { return cmp.Compare(entity.Key(x.Name), entity.Key(y.Name)) })
}

// dated returns groups with the times that they have: of a group that was there before,
// its own, unless it has changed.
func (c *Catalog) dated(gs, before []entity.ConsumerGroup) []entity.ConsumerGroup {
	now := c.clock.Now().UTC()
	gs = slices.Clone(gs)
	for i := range gs {
		gs[i].CreatedAt, gs[i].UpdatedAt = now, now
		was := groupIndex(before, gs[i].Name)
		if was < 0 {
			continue
		}
		gs[i].CreatedAt = before[was].CreatedAt
		if gs[i].UserMetadata == before[was].UserMetadata {
			gs[i].UpdatedAt = before[was].UpdatedAt
		}
	}
	sortGroups(gs)
	return gs
}
