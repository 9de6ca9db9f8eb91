// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/limits"
)

// What an event hub has if nothing else is said.
const (
	defaultPartitions   = 4
	defaultRetention    = 24 * Duration(time.Hour)
	defaultMaxEventKB   = 1024
	minMessageRetention = Duration(time.Minute)
)

// DefaultGroup is the consumer group that every hub has.
const DefaultGroup = "$Default"

// Hub is the definition of an event hub: partitions whose events stay for a time, however
// often they are read.
type Hub struct {
	Name string `json:"name"`
	// PartitionCount may grow later, and never shrink.
	PartitionCount   int      `json:"partitionCount,omitzero"`
	MessageRetention Duration `json:"messageRetention,omitzero"`
	// MaxPartitionSizeInMegabytes drops the oldest events of a partition that is larger;
	// zero is no limit.
	MaxPartitionSizeInMegabytes int64 `json:"maxPartitionSizeInMegabytes,omitzero"`
	// MaxMessageSizeInKilobytes is the size of the largest batch.
	MaxMessageSizeInKilobytes int64              `json:"maxMessageSizeInKilobytes,omitzero"`
	Status                    Status             `json:"status,omitzero"`
	UserMetadata              string             `json:"userMetadata,omitzero"`
	AuthorizationRules        AuthorizationRules `json:"authorizationRules,omitempty"`

	// ConsumerGroups are all the groups there shall be; $Default exists whether
	// it is listed or not. Nil leaves those that exist as they are.
	ConsumerGroups []ConsumerGroup `json:"consumerGroups,omitzero"`
}

// ConsumerGroup is a name under which a hub is read. Readers of different groups do not
// affect each other.
type ConsumerGroup struct {
	Name         string `json:"name"`
	UserMetadata string `json:"userMetadata,omitzero"`

	// CreatedAt is when the broker created the group; UpdatedAt is when it changed it. The
	// caller's values are ignored.
	CreatedAt time.Time `json:"createdAt,omitzero"`
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
}

// WithDefaults returns h with every unset property set.
func (h Hub) WithDefaults() Hub {
	h.PartitionCount = cmp.Or(h.PartitionCount, defaultPartitions)
	h.MessageRetention = cmp.Or(h.MessageRetention, defaultRetention)
	h.MaxMessageSizeInKilobytes = cmp.Or(h.MaxMessageSizeInKilobytes, defaultMaxEventKB)
	h.Status = cmp.Or(h.Status, Active)
	return h
}

// Validate reports everything that is wrong with h, as [Faults].
func (h Hub) Validate() error {
	var fs Faults
	fs.name("name", h.Name, checkName)
	fs.number("partitionCount", int64(h.PartitionCount), 1, limits.Partitions)
	fs.duration("messageRetention", h.MessageRetention, minMessageRetention, Forever)
	fs.number("maxPartitionSizeInMegabytes", h.MaxPartitionSizeInMegabytes, 0, math.MaxInt64>>20)
	fs.number("maxMessageSizeInKilobytes", h.MaxMessageSizeInKilobytes, 1, maxMessageKB)
	fs.status(h.Status)
	fs.length("userMetadata", h.UserMetadata, limits.UserMetadata)
	fs.nested("authorizationRules", h.AuthorizationRules.faults())
	names := map[string]int{}
	for i, g := range h.ConsumerGroups {
		if fs.full() {
			break
		}
		place := fmt.Sprintf("consumerGroups[%d]", i)
		fs.nested(place, g.faults())
		if first, twice := names[Key(g.Name)]; twice {
			fs.addf(place+".name", "%q is also the name of consumerGroups[%d]", g.Name, first)
			continue
		}
		names[Key(g.Name)] = i
	}
	if n := len(names); n > limits.ConsumerGroups {
		fs.addf("consumerGroups", "%d groups, at most %d are allowed", n, limits.ConsumerGroups)
	}
	return fs.err()
}

// Validate reports everything that is wrong with g, as [Faults].
func (g ConsumerGroup) Validate() error { return g.faults().err() }

func (g ConsumerGroup) faults() Faults {
	var fs Faults
	fs.name("name", g.Name, checkGroupName)
	fs.length("userMetadata", g.UserMetadata, limits.UserMetadata)
	return fs
}

// CheckUpdate reports which of the differences between h and next are not allowed, each
// as an [UpdateError]. Both have their defaults.
func (h Hub) CheckUpdate(next Hub) error {
	u := update{kind: "EventHub"}
	u.name(h.Name, next.Name)
	if next.PartitionCount < h.PartitionCount {
		u.refuse("PartitionCount", fmt.Sprintf(
			"The partition count of an existing EventHub cannot be decreased: it is %d, and %d was asked for. ", h.PartitionCount, next.PartitionCount))
	}
	return u.err()
}

// CheckKeys reports the keys of the hub that are too short, other than those of known.
func (h Hub) CheckKeys(known AuthorizationRules) error { return ownKeys(h.AuthorizationRules, known) }
