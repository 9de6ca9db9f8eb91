// SPDX-License-Identifier: Apache-2.0

package server

import (
	"log/slog"

	"github.com/triagemq/triagemq/internal/budget"
)

// minMemory is what peers need at least for a broker to be of use: a connection has a
// quarter of it, which has to hold the largest message.
const minMemory = 16 << 20

// memory returns what peers may make the process hold. By default it is half of what
// the process may use: the other half is for the index of the messages, the cache and
// the garbage that has not been collected yet.
func (c Config) memory(log *slog.Logger) *budget.Process {
	limit := int64(c.Limits.Memory)
	if limit == 0 {
		limit = budget.Memory() / 2
	}
	if limit > 0 && limit < minMemory {
		log.Warn("little memory for clients: raise limits.memory, GOMEMLIMIT or the limit of the control group",
			"bytes", limit, "used", int64(minMemory))
		limit = minMemory
	}
	p := budget.NewProcess(budget.Limits{Process: limit, Unsynced: c.MaxUnsynced})
	log.Debug("memory for clients", "bytes", p.Usage().Limit)
	return p
}
