// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"net"
	"strings"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/entity"
)

const (
	cbsAddress       = "$cbs"
	managementSuffix = "/$management"
	temporaryPrefix  = "$temporary/"

	// nowhere is the path of an address that cannot be one.
	nowhere = "*"
)

// PathOf returns an address in the one form in which rights are compared, nodes of
// our own recognised, and the broker asked: clients write $cbs, /$cbs and
// amqps://h/$cbs. Since the broker is given the same text that was checked, no
// spelling leads past a check.
func PathOf(addr string) string {
	if p, err := entity.ParsePath(addr); err == nil {
		return entity.Key(p.String())
	}
	if access.PathOf(addr) == "" {
		return "" // the namespace
	}
	return nowhere
}

func isCBS(addr string) bool { return PathOf(addr) == cbsAddress }

func isManagement(addr string) bool {
	return strings.HasSuffix("/"+PathOf(addr), managementSuffix)
}

func isTemporary(addr string) bool { return strings.HasPrefix(PathOf(addr), temporaryPrefix) }

// managedEntity returns the path of the entity whose management node addr is.
func managedEntity(addr string) string {
	return strings.Trim(strings.TrimSuffix("/"+PathOf(addr), managementSuffix), "/")
}

// urlOf names an entity in error texts, which clients match on.
func (c *Conn) urlOf(addr string) string {
	host, _, err := net.SplitHostPort(c.host)
	if err != nil {
		host = c.host // it has no port
	}
	return "sb://" + host + "/" + strings.TrimPrefix(addr, "/")
}
