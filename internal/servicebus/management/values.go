// SPDX-License-Identifier: Apache-2.0

package management

import (
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
)

// Changes reads changes to application properties. It stops at as many as are too
// many, whatever is in them, for the broker to refuse.
func Changes(v codec.Value) []message.Change {
	var ps []message.Change
	for key, value := range v.Map() {
		if len(ps) > limits.Properties {
			break
		}
		if name, ok := key.Str(); ok {
			ps = append(ps, message.Change{Name: name, Value: value})
		}
	}
	return ps
}

// RetryAfter reads how long nobody is to get a message that is abandoned.
func RetryAfter(v codec.Value) (time.Duration, error) {
	ms, ok := wire.Integer(v)
	if !ok || ms < 0 || ms > broker.LongestRetry.Milliseconds() {
		return 0, azure.BadArgument(names.RetryAfter, fmt.Sprintf("a number of milliseconds from 0 to %d", broker.LongestRetry.Milliseconds()))
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// StampOf says what goes onto a message that is delivered on a link.
func StampOf(d *broker.Delivery, mode broker.Mode) message.BrokerProperties {
	s := message.BrokerProperties{
		SequenceNumber:         int64(d.Seq),
		EnqueuedTime:           d.EnqueuedAt,
		DeliveryCount:          d.Failures,
		EnqueuedSequenceNumber: int64(d.Origin),
		TTL:                    d.TTL(),
	}
	if mode == broker.PeekLock {
		s.LockedUntil = d.LockedUntil
		s.LockToken, s.HasLock = d.Token.Bytes(), true
	}
	return s
}
