// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net"
	"strings"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/entity"
)

// Addresses of what is no entity.
const (
	CBS              = names.CBS
	ManagementSuffix = names.ManagementSuffix
	DynamicPrefix    = "$temporary/"

	// invalidPath is the path of an address that cannot be one.
	invalidPath = "*"
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
	return invalidPath
}

// IsCBS reports whether addr is that of the node that takes tokens.
func IsCBS(addr string) bool { return PathOf(addr) == CBS }

// IsManagement reports whether addr is that of a management node.
func IsManagement(addr string) bool {
	return strings.HasSuffix("/"+PathOf(addr), ManagementSuffix)
}

// IsDynamicNode reports whether addr is that of a dynamic node.
func IsDynamicNode(addr string) bool { return strings.HasPrefix(PathOf(addr), DynamicPrefix) }

// ManagedEntity returns the path of the entity whose management node addr is.
func ManagedEntity(addr string) string {
	return strings.Trim(strings.TrimSuffix("/"+PathOf(addr), ManagementSuffix), "/")
}

// URL names an entity in error texts, which clients match on. The host is what the
// client calls us.
func URL(host, addr string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return "sb://" + host + "/" + strings.TrimPrefix(addr, "/")
}
