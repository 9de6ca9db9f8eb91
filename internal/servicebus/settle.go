// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"slices"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/servicebus/management"
)

const (
	keyReason      = names.DeadLetterReason
	keyDescription = names.DeadLetterDescription
)

// settlement is one disposition of the peer on its way through the broker.
type settlement struct {
	ids         []uint32
	disposition broker.Disposition
	errs        []error // beside ids; nil for none
}

// maxTokens bounds the buffer that a link keeps for the tokens of a disposition.
const maxTokens = 1024

// disposition settles what the peer decided about, a whole range at once.
func (r *receiver) Disposition(o *endpoint.Outcome) {
	outcome, final, err := outcomeOf(o)
	if !final {
		return
	}
	if r.brokerReceiver() == nil || r.mode == broker.ReceiveAndDelete || err != nil && o.Settled && o.State.Kind == frame.StateModified {
		return // nobody can be told what is wrong: the lock runs out
	}
	tokens := slices.Grow(r.tokens[:0], len(o.Deliveries))
	var sources []int // of a set
	for _, d := range o.Deliveries {
		if len(r.options.sources) > 0 {
			sources = append(sources, r.locks.source(d.Ref))
		}
		tokens = append(tokens, r.locks.take(d.Ref))
	}
	if cap(tokens) <= maxTokens {
		r.tokens = tokens
	}
	charge := outcomeCost(&outcome, &o.State)
	if charge > 0 && !r.c.Memory().TryTake(charge) {
		charge, err = 0, azure.ErrNoMemory // if the peer waits for no answer, the locks run out
		if o.Settled {
			return
		}
	}
	if o.Settled {
		switch {
		case sources != nil:
			r.settleSet(tokens, sources, outcome, &settlement{}, charge)
		case charge > 0:
			r.settle(0, tokens, outcome, func([]error) { r.c.Memory().Release(charge) })
		default:
			r.settle(0, tokens, outcome, nil)
		}
		return
	}
	s := &settlement{ids: make([]uint32, len(o.Deliveries)), disposition: outcome.Disposition}
	for i, d := range o.Deliveries {
		s.ids[i] = d.ID
	}
	if err != nil {
		for _, id := range s.ids {
			r.link.SettleOut(id, frame.Rejected(r.c.WireError(r.path, err)))
		}
		return
	}
	if sources != nil {
		r.settleSet(tokens, sources, outcome, s, charge)
		return
	}
	r.settle(0, tokens, outcome, func(errs []error) {
		if charge > 0 {
			r.c.Memory().Release(charge)
		}
		s.errs = errs
		r.c.Post(azure.Event{To: r, Kind: eventSettled, Value: s})
	})
}

// settled tells the peer how its settlement went. The answer to a rejection is a
// rejection without an error: with one, both SDKs would take the settlement as
// failed.
func (r *receiver) settled(s *settlement) {
	success := frame.Accepted()
	if s.disposition == broker.DeadLetter {
		success = frame.Rejected(nil)
	}
	for i, id := range s.ids {
		state := success
		if s.errs != nil && s.errs[i] != nil {
			state = frame.Rejected(r.c.WireError(r.path, s.errs[i]))
		}
		r.link.SettleOut(id, state)
	}
}

// outcomeCost is what an outcome takes until the broker has written it into the messages.
// One without properties or reasons takes next to nothing.
func outcomeCost(o *broker.Outcome, s *frame.State) int64 {
	n := len(s.Annotations) + management.ChangeCost*len(o.Properties)
	if s.Error != nil {
		n += len(s.Error.Condition) + len(s.Error.Description) + len(s.Error.Info)
	}
	return int64(n)
}

// outcomeOf reads a delivery state as a disposition. It is not final while the peer
// only reports progress.
func outcomeOf(o *endpoint.Outcome) (outcome broker.Outcome, final bool, err error) {
	switch s := o.State; s.Kind {
	case frame.StateAccepted:
		return broker.Outcome{Disposition: broker.Complete}, true, nil
	case frame.StateReleased:
		return broker.Outcome{Disposition: broker.Release}, true, nil
	case frame.StateModified:
		outcome, err := modifiedOutcome(s)
		return outcome, true, err
	case frame.StateRejected:
		return deadLetterOf(s.Error), true, nil
	case frame.StateNone:
		// The peer forgot the delivery without a word: someone else may have it.
		return broker.Outcome{Disposition: broker.Release}, o.Settled, nil
	case frame.StateTransactional:
		err = endpoint.Errorf(endpoint.CondNotImplemented, "Transactions are not supported by this broker yet.")
		return broker.Outcome{Disposition: broker.Release}, true, err
	}
	return broker.Outcome{Disposition: broker.Release}, o.Settled, nil
}

// modifiedOutcome reads what becomes of a message with other properties. Any client may say
// how long nobody is to get it, and our own that its delivery counts as none.
func modifiedOutcome(s frame.State) (broker.Outcome, error) {
	o := broker.Outcome{Disposition: broker.Abandon, Properties: changesOf(s.Annotations)}
	if s.UndeliverableHere {
		o.Disposition = broker.Defer
	}
	if i := slices.IndexFunc(o.Properties, func(c message.Change) bool { return c.Name == names.Uncounted }); i >= 0 {
		if yes, _ := o.Properties[i].Value.Bool(); yes && o.Disposition == broker.Abandon {
			o.Disposition = broker.Release
		}
		o.Properties = slices.Delete(o.Properties, i, i+1)
	}
	var err error
	if i := slices.IndexFunc(o.Properties, func(c message.Change) bool { return c.Name == names.RetryAfter }); i >= 0 {
		o.RetryAfter, err = management.RetryAfter(o.Properties[i].Value)
		o.Properties = slices.Delete(o.Properties, i, i+1)
	}
	return o, err
}

// deadLetterOf reads why a message is rejected. SDKs say it in the info of the
// vendor's condition; of plain clients we take the error itself.
func deadLetterOf(e *frame.Error) broker.Outcome {
	o := broker.Outcome{Disposition: broker.DeadLetter}
	if e == nil {
		return o
	}
	if e.Condition != names.DeadLetter {
		o.Reason, o.Description = e.Condition, e.Description
	}
	for _, p := range changesOf(e.Info) {
		text, isText := p.Value.Str()
		switch {
		case p.Name == keyReason && isText:
			o.Reason = text
		case p.Name == keyDescription && isText:
			o.Description = text
		case (p.Name == keyReason || p.Name == keyDescription) && p.Value.IsNull():
			// The SDK for JavaScript names both, also without a value.
		default:
			o.Properties = append(o.Properties, p)
		}
	}
	return o
}

// changesOf reads the changes to application properties that a peer hides in a
// map of annotations, with bytes of their own.
func changesOf(encoded []byte) []message.Change {
	if len(encoded) == 0 {
		return nil
	}
	v, err := codec.ParseValue(append([]byte(nil), encoded...))
	if err != nil {
		return nil
	}
	return management.Changes(v)
}
