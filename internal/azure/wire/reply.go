// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/message"
)

// Reply is the answer to a request.
type Reply struct {
	Status    int32
	Text      string
	Condition string      // of a failure
	Body      codec.Value // null, or a map with at least one key
	// Encoded is the whole message, if it was written behind AppendHead.
	Encoded []byte
}

// Encode makes the message.
func (a Reply) Encode(request *message.Message) []byte {
	if a.Encoded != nil {
		return a.Encoded
	}
	d := a.draft(request)
	d.Value = &a.Body
	return d.Encode(nil)
}

// AppendHead appends the message up to its body, which the caller appends.
func (a Reply) AppendHead(dst []byte, request *message.Message) []byte {
	d := a.draft(request)
	return d.EncodeHead(dst)
}

// draft returns the message without its body. Every key is there in both spellings,
// because clients differ in which one they read, and the status is an int, because the Go
// SDK accepts no other type.
func (a Reply) draft(request *message.Message) message.Draft {
	id := request.MessageID()
	if id.IsNull() {
		id = request.CorrelationID()
	}
	d := message.Draft{
		CorrelationID: id,
		To:            request.ReplyTo(),
		Application: []message.Pair{
			{Name: names.StatusCodeDashed, Value: codec.Int(a.Status)},
			{Name: names.StatusCode, Value: codec.Int(a.Status)},
			{Name: names.StatusTextDashed, Value: codec.String(a.Text)},
			{Name: names.StatusText, Value: codec.String(a.Text)},
		},
	}
	if a.Condition != "" {
		d.Application = append(d.Application,
			message.Pair{Name: names.ErrorConditionDashed, Value: codec.Symbol(a.Condition)},
			message.Pair{Name: names.ErrorCondition, Value: codec.Symbol(a.Condition)})
	}
	return d
}

// Done is the body of a reply that has nothing to say: the Go SDK chokes on an
// empty map.
var Done = codec.Map(codec.String("result"), codec.Bool(true))

// Result makes the body of a reply from names and values in turn.
func Result(pairs ...any) codec.Value {
	vs := make([]codec.Value, len(pairs))
	for i, p := range pairs {
		switch p := p.(type) {
		case string:
			vs[i] = codec.String(p)
		case codec.Value:
			vs[i] = p
		}
	}
	return codec.Map(vs...)
}
