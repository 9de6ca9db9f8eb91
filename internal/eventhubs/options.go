// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"math"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
)

// desires reports whether the peer of a link wants a capability.
func desires(remote *frame.Attach, capability string) bool {
	return slices.Contains(remote.DesiredCapabilities, capability)
}

// number reads an integer among the properties of a link; nil if it is absent or null.
func number(remote *frame.Attach, key string, lowest, highest int64) (*int64, error) {
	v, ok := wire.Lookup(remote.Properties, key)
	if !ok || v.IsNull() {
		return nil, nil
	}
	n, ok := wire.Integer(v)
	if !ok {
		return nil, endpoint.Errorf(names.ArgumentError, "The link property %s is a %v, not a number.", key, v.Kind())
	}
	if n < lowest || n > highest {
		return nil, endpoint.Errorf(names.ArgumentOutOfRange, "The link property %s is %d. It has to be from %d to %d.", key, n, lowest, highest)
	}
	return &n, nil
}

// readerOptionsOf reads what a receiver asks for.
func readerOptionsOf(l *endpoint.Link) (o broker.EventReaderOptions, err error) {
	remote := l.Remote()
	if o.From, err = startOf(remote.Source); err != nil {
		return o, err
	}
	if o.Epoch, err = number(remote, names.Epoch, 0, math.MaxInt64); err != nil {
		return o, err
	}
	name, ok := wire.LookupText(remote.Properties, names.ReceiverName)
	if !ok || name == "" {
		name = l.Name()
	}
	name = name[:min(len(name), limits.Name)]
	// Other peers get it in errors, and some fail at what is no UTF-8.
	o.Name = strings.ToValidUTF8(strings.Clone(name), "\uFFFD") // not to keep the attach
	return o, nil
}

// producerOf reads what an idempotent producer says about itself; nil if nothing.
func producerOf(remote *frame.Attach) (*broker.Producer, error) {
	id, err := number(remote, names.ProducerID, 0, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	epoch, err := number(remote, names.ProducerEpoch, 0, math.MaxInt16)
	if err != nil {
		return nil, err
	}
	seq, err := number(remote, names.ProducerSequence, -1, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	if id == nil && epoch == nil && seq == nil {
		return nil, nil
	}
	p := &broker.Producer{ID: -1, Epoch: -1, Seq: -1}
	if id != nil {
		p.ID = *id
	}
	if epoch != nil {
		p.Epoch = int16(*epoch)
	}
	if seq != nil {
		p.Seq = int32(*seq)
	}
	return p, nil
}

// producerProperties tells an idempotent producer what it is, in the types that the
// JavaScript SDK reads.
func producerProperties(p broker.Producer) []byte {
	b, at := codec.BeginMap(nil)
	b = codec.AppendLong(codec.AppendSymbol(b, names.ProducerID), p.ID)
	b = codec.AppendValue(codec.AppendSymbol(b, names.ProducerEpoch), codec.Short(p.Epoch))
	b = codec.AppendInt(codec.AppendSymbol(b, names.ProducerSequence), p.Seq)
	return codec.EndMap(b, at, 3)
}
