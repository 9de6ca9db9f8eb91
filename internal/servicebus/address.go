// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"strings"

	"github.com/triagemq/triagemq/internal/access"
)

const (
	cbsAddress       = "$cbs"
	managementSuffix = "/$management"
	temporaryPrefix  = "$temporary/"
)

// pathOf returns an address in the form in which rights are compared and in which
// nodes of our own are recognised: clients write $cbs, /$cbs and amqps://h/$cbs.
func pathOf(addr string) string { return access.PathOf(addr) }

func isCBS(addr string) bool { return pathOf(addr) == cbsAddress }

func isManagement(addr string) bool {
	return strings.HasSuffix("/"+pathOf(addr), managementSuffix)
}

func isTemporary(addr string) bool { return strings.HasPrefix(pathOf(addr), temporaryPrefix) }

// managedEntity returns the path of the entity whose management node addr is.
func managedEntity(addr string) string {
	return strings.Trim(strings.TrimSuffix("/"+pathOf(addr), managementSuffix), "/")
}

// urlOf names an entity in error texts, which clients match on.
func (c *conn) urlOf(addr string) string {
	host, _, _ := strings.Cut(c.host, ":")
	return "sb://" + host + "/" + strings.TrimPrefix(addr, "/")
}
