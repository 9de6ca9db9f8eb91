// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"strings"

	"github.com/triagemq/triagemq/internal/entity"
)

func (d *differ) hub(h entity.Hub) {
	s := Step{Verb: Create, EntityRef: EntityRef{Kind: Hub, Name: h.Name}, Conflict: d.taken(h.Name, Hub)}
	groups := h.ConsumerGroups
	h.ConsumerGroups = nil
	have, found := d.hubs[entity.Key(h.Name)]
	if !found {
		s.NewHub = new(h.WithDefaults())
		s.Changes = changes(entity.Hub{}.WithDefaults(), *s.NewHub)
		d.add(s)
	} else {
		old := have.WithDefaults()
		h.Status = cmp.Or(h.Status, old.Status)
		h.PartitionCount = cmp.Or(h.PartitionCount, old.PartitionCount)
		if h.AuthorizationRules == nil {
			h.AuthorizationRules = old.AuthorizationRules
		}
		h = h.WithDefaults()
		s.Verb, s.NewHub, s.Changes, s.Conflict = Update, &h, changes(old, h), old.CheckUpdate(h)
		d.change(s)
	}
	d.groups(h.Name, groups, have.ConsumerGroups)
}

// groups compares the consumer groups of a hub. One that a file does not have stays.
func (d *differ) groups(hub string, want, have []entity.ConsumerGroup) {
	there := map[string]entity.ConsumerGroup{entity.Key(entity.DefaultGroup): {Name: entity.DefaultGroup}} // every hub has it
	for _, g := range have {
		there[entity.Key(g.Name)] = g
	}
	for _, g := range want {
		s := Step{Verb: Update, EntityRef: EntityRef{Kind: Group, Hub: hub, Name: g.Name}, NewGroup: &g}
		old, found := there[entity.Key(g.Name)]
		s.Changes = changes(old, g)
		if !found {
			s.Verb = Create
			d.add(s)
			continue
		}
		d.change(s)
	}
}

func (d *differ) leaveHubs(want, have Namespace) {
	named := map[string]bool{}
	for _, h := range want.Hubs {
		named[entity.Key(h.Name)] = true
		for _, g := range h.ConsumerGroups {
			named[groupKey(h, g)] = true
		}
	}
	for _, h := range have.Hubs {
		if !named[entity.Key(h.Name)] {
			d.keep(EntityRef{Kind: Hub, Name: h.Name}) // with its groups
			continue
		}
		for _, g := range h.ConsumerGroups {
			if !named[groupKey(h, g)] && !strings.EqualFold(g.Name, entity.DefaultGroup) {
				d.keep(EntityRef{Kind: Group, Hub: h.Name, Name: g.Name})
			}
		}
	}
}

func groupKey(h entity.Hub, g entity.ConsumerGroup) string {
	return entity.Key(entity.Path{Entity: h.Name, Group: g.Name}.String())
}
