// SPDX-License-Identifier: Apache-2.0

package broker

import "github.com/triagemq/triagemq/internal/entity"

// RequireLongKeys has entities refused whose keys are too short to protect them. Those
// that an entity has already may stay. It is called before the broker is used.
func (b *Broker) RequireLongKeys() { b.longKeys = true }

func (b *Broker) checkKeys(e interface {
	CheckKeys(known entity.AuthorizationRules) error
}, known entity.AuthorizationRules) error {
	if !b.longKeys {
		return nil
	}
	if err := e.CheckKeys(known); err != nil {
		return invalid(err)
	}
	return nil
}
