// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"math"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/queue"
)

// maxSources bounds the queues of one receiver.
const maxSources = 256

// linkOptions are what our own clients ask for beyond what others know.
type linkOptions struct {
	any     bool     // there is one
	sources []string // paths, in order of preference; none for a plain receiver
	rule    broker.SourceSelection
	recall  bool // it keeps messages that it has not started and gives them back
	tell    bool // it wants to know the level and class of each message
	poll    bool // it wants for each credit what there is at once
}

// linkOptionsOf reads the options of an attach and puts those about levels into o.
func linkOptionsOf(properties []byte, o *broker.ReceiverOptions) (w linkOptions, err error) {
	level := func(key string, to *queue.Level) bool {
		v, ok := wire.Lookup(properties, key)
		if !ok || err != nil {
			return false
		}
		n, isNumber := wire.Integer(v)
		if !isNumber || n < 0 || n > math.MaxUint8 {
			err = endpoint.Errorf(names.ArgumentError, "The link property %s is not a level of 0 to 255.", key)
			return false
		}
		*to, w.any = queue.Level(n), true
		return true
	}
	level(names.MinLevel, &o.MinLevel)
	o.HasMaxLevel = level(names.MaxLevel, &o.MaxLevel)
	for key, to := range map[string]*string{names.MinClass: &o.MinClass, names.MaxClass: &o.MaxClass} {
		if text, ok := wire.LookupText(properties, key); ok {
			*to, w.any = string([]byte(text)), true // the attach's bytes are not ours
		}
	}
	if err == nil {
		err = w.readSources(properties)
	}
	if v, ok := wire.Lookup(properties, names.Recall); ok {
		w.recall, _ = v.Bool()
		o.Recall, w.any = w.recall, true
	}
	if v, ok := wire.Lookup(properties, names.DurableLocks); ok {
		o.DurableLocks, _ = v.Bool()
		w.any = true
	}
	if v, ok := wire.Lookup(properties, names.TellLevel); ok {
		w.tell, _ = v.Bool()
		w.any = true
	}
	if v, ok := wire.Lookup(properties, names.Poll); ok {
		w.poll, _ = v.Bool()
		w.any = true
	}
	return w, err
}

// polled is the link state at the end of a poll.
var polled = codec.AppendValue(nil, codec.Map(codec.Symbol(names.Polled), codec.Bool(true)))

func (w *linkOptions) readSources(properties []byte) error {
	v, ok := wire.Lookup(properties, names.Sources)
	if !ok {
		return nil
	}
	for item := range v.List() {
		addr, isText := item.Str()
		if !isText || len(w.sources) == maxSources {
			return endpoint.Errorf(names.ArgumentError, "The link property %s is not a list of up to %d addresses.", names.Sources, maxSources)
		}
		w.sources = append(w.sources, wire.PathOf(addr))
	}
	rule, _ := wire.LookupText(properties, names.SourceSelection)
	switch rule {
	case "", "order":
		w.rule = broker.ByOrder
	case "level":
		w.rule = broker.ByLevel
	default:
		return endpoint.Errorf(names.ArgumentError, "The link property %s is neither order nor level.", names.SourceSelection)
	}
	w.any = w.any || len(w.sources) > 0
	return nil
}

// appendGranted adds to the answer of an attach that its options were understood.
func (w *linkOptions) appendGranted(b []byte) []byte {
	return codec.AppendBool(codec.AppendSymbol(b, names.Granted), true)
}
