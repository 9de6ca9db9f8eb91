// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

// OutcomeCode is how a SASL exchange ended [AMQP 5.3.3.6].
type OutcomeCode uint8

// The outcome codes we use.
const (
	OutcomeOK   OutcomeCode = 0
	OutcomeAuth OutcomeCode = 1 // authentication failed
)

// Outcome ends a SASL exchange [AMQP 5.3.3.5].
type Outcome struct {
	Code       OutcomeCode
	Additional []byte
}

// Append appends o, descriptor included.
func (o *Outcome) Append(dst []byte) []byte {
	w := compose(dst, CodeOutcome)
	w.present(codec.AppendUbyte(w.dst, uint8(o.Code)))
	if o.Additional == nil {
		w.absent()
	} else {
		w.present(codec.AppendBinary(w.dst, o.Additional))
	}
	return w.close()
}

// Decode reads the fields of a sasl-outcome.
func (o *Outcome) Decode(r *codec.Reader) {
	mandatory(r, "code")
	o.Code = OutcomeCode(r.Ubyte())
	o.Additional = r.Binary()
}
