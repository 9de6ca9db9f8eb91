// SPDX-License-Identifier: Apache-2.0

package bodies

import (
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
)

// ReasonUnreadable is the reason of a dead letter whose body cannot be read, and the
// name of a property of its placeholder.
const ReasonUnreadable = "MessageUnreadable"

// DescribeUnreadable is the description for it. It does not give the cause, which may
// name files: only the log of the broker has it.
const DescribeUnreadable = "The body of the message could not be read from the disk of the broker. Its log says why."

// MaxReason is how many characters of a reason, and of its description, are stored.
// Service Bus has the same limit. The space for them is reserved on a full disk.
const MaxReason = 4096

// Reason returns the body that has the reason of a dead letter; nil if there is none.
func Reason(reason, description string) []byte {
	if reason == "" && description == "" {
		return nil
	}
	var d message.Draft
	for _, p := range []struct{ name, text string }{
		{message.PropertyDeadLetterReason, reason}, {message.PropertyDeadLetterDescription, description},
	} {
		if p.text != "" {
			d.Application = append(d.Application, message.Pair{Name: p.name, Value: codec.String(clip(p.text))})
		}
	}
	return d.Encode(nil)
}

// ReasonSize is how large what Reason returns is at most.
func ReasonSize(reason, description string) int {
	const names = 128
	return names + min(len(reason), 4*MaxReason) + min(len(description), 4*MaxReason)
}

// clip returns at most MaxReason characters of a text.
func clip(text string) string {
	if len(text) <= MaxReason {
		return text
	}
	n := 0
	for i := range text {
		if n == MaxReason {
			return text[:i]
		}
		n++
	}
	return text
}

// SavedState returns the body that has the state which a consumer has saved of a message.
func SavedState(state []byte) []byte {
	d := message.Draft{Application: []message.Pair{{Name: message.PropertyState, Value: codec.Binary(state)}}}
	return d.Encode(nil)
}

// merged returns a message with what is beside it among its properties: the reason of a dead
// letter, a saved state.
func merged(m, beside *message.Message) (*message.Message, error) {
	var set []message.Change
	for name, v := range beside.Properties() {
		set = append(set, message.Change{Name: name, Value: v})
	}
	return message.ParseStored(m.Edit(message.Edit{Properties: set}))
}

// Placeholder returns a message that is shown in place of a dead letter that cannot be
// read. It has the reason, if that is known, and an empty body. The property
// ReasonUnreadable distinguishes it from a message that is empty.
func Placeholder(reason *message.Message) *message.Message {
	d := message.Draft{Body: []byte{}, Application: []message.Pair{{Name: ReasonUnreadable, Value: codec.Bool(true)}}}
	if reason == nil {
		d.Application = append(d.Application,
			message.Pair{Name: message.PropertyDeadLetterReason, Value: codec.String(ReasonUnreadable)},
			message.Pair{Name: message.PropertyDeadLetterDescription, Value: codec.String(DescribeUnreadable)})
		return d.Message()
	}
	for name, v := range reason.Properties() {
		d.Application = append(d.Application, message.Pair{Name: name, Value: v})
	}
	return d.Message()
}
