// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"

	"github.com/triagemq/triagemq/internal/streamserver"
)

// LoseHubs makes the events of all hubs unreachable, until restore is called.
func (b *Broker) LoseHubs() (restore func()) {
	was := b.logs
	b.logs = lostHubs{was}
	return func() { b.logs = was }
}

type lostHubs struct{ HubLogs }

func (lostHubs) Hub(string) (*streamserver.Hub, error) { return nil, errors.New("lost") }
