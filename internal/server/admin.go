// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"

	"github.com/triagemq/triagemq/internal/admin"
	"github.com/triagemq/triagemq/internal/azure"
)

// adminHandler is the HTTP side of the broker.
func (f *frontend) adminHandler(parts Parts) http.Handler {
	return admin.New(admin.Parts{
		Broker:       parts.Broker,
		Callers:      parts.Authority,
		Log:          f.log,
		Namespace:    f.cfg.Namespace,
		Unsynced:     unsynced,
		Memory:       parts.Memory.Usage,
		ChargeMemory: hold,
		Disk:         parts.Disk,
		Warnings:     f.warnings,
		Refusals:     f.refusals.Total,
		Encrypted: func(r *http.Request) bool {
			return r.Context().Value(connKey{}).(*handed).encrypted
		},
		Connections: func(ctx context.Context, skip, top int) ([]admin.Connection, int) {
			cs, total := f.service.Connections(ctx, skip, top)
			return connections(cs), total
		},
		ConnectionCount: f.service.ConnectionCount,
	})
}

// connections puts what the personality knows into the words of the API.
func connections(cs []azure.Connection) []admin.Connection {
	var out []admin.Connection
	for _, c := range cs {
		ac := admin.Connection{Peer: c.Peer, Since: c.Since, Client: c.Client, Links: []admin.Link{}}
		for _, l := range c.Links {
			ac.Links = append(ac.Links, admin.Link(l))
		}
		out = append(out, ac)
	}
	return out
}
