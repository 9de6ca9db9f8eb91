// SPDX-License-Identifier: Apache-2.0

package catalog

import "github.com/triagemq/triagemq/internal/entity"

// RequireLongKeys has entities rejected whose keys are too short to protect them. Those of
// stored entities stay. It is called before the broker is used.
func (c *Catalog) RequireLongKeys() { c.longKeys = true }

func (c *Catalog) checkKeys(e interface {
	CheckKeys(known entity.AuthorizationRules) error
}, known entity.AuthorizationRules) error {
	if !c.longKeys {
		return nil
	}
	if err := e.CheckKeys(known); err != nil {
		return Invalid(err)
	}
	return nil
}
