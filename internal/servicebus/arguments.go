// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/queue"
)

// Arguments of a request are read leniently where clients differ (any integer
// type, symbol or string) and refused clearly where they make no sense.

func badArgument(name, want string) error {
	return endpoint.Errorf(condArgument, "Argument '%s' must be %s.", name, want)
}

// text returns a string argument; nil when it is absent or null.
func (k *call) text(name string) *string {
	v, _ := k.body.Lookup(name)
	s, ok := v.Str()
	if !ok {
		return nil
	}
	return &s
}

func (k *call) mustText(name string) (string, error) {
	s := k.text(name)
	if s == nil {
		return "", badArgument(name, "a string")
	}
	return *s, nil
}

// count returns a number between zero and most.
func (k *call) count(name string, most int) (int, error) {
	v, _ := k.body.Lookup(name)
	n, ok := number(v)
	if !ok || n < 0 {
		return 0, badArgument(name, "a number that is not negative")
	}
	return int(min(n, int64(most))), nil
}

func (k *call) time(name string) (time.Time, error) {
	v, _ := k.body.Lookup(name)
	t, ok := v.Time()
	if !ok {
		return time.Time{}, badArgument(name, "a timestamp")
	}
	return t, nil
}

// list returns the elements of an array or list.
func (k *call) list(name string) ([]codec.Value, error) {
	v, _ := k.body.Lookup(name)
	if v.Kind() != codec.KindArray && v.Kind() != codec.KindList {
		return nil, badArgument(name, "an array")
	}
	var vs []codec.Value
	for e := range v.List() {
		if len(vs) == limits.Tokens {
			return nil, badArgument(name, fmt.Sprintf("a list of at most %d elements", limits.Tokens))
		}
		vs = append(vs, e)
	}
	if len(vs) == 0 {
		return nil, badArgument(name, "not empty")
	}
	return vs, nil
}

// tokens returns lock tokens, which travel as UUIDs.
func (k *call) tokens(name string) ([]queue.Token, error) {
	vs, err := k.list(name)
	if err != nil {
		return nil, err
	}
	tokens := make([]queue.Token, len(vs))
	for i, v := range vs {
		id, ok := v.UUID()
		if !ok {
			return nil, badArgument(name, "an array of uuids")
		}
		tokens[i] = queue.TokenFrom(id)
	}
	return tokens, nil
}

// numbers returns sequence numbers.
func (k *call) numbers(name string) ([]queue.SeqNo, error) {
	vs, err := k.list(name)
	if err != nil {
		return nil, err
	}
	seqs := make([]queue.SeqNo, len(vs))
	for i, v := range vs {
		n, ok := number(v)
		if !ok || n < 0 {
			return nil, badArgument(name, "an array of sequence numbers")
		}
		seqs[i] = queue.SeqNo(n)
	}
	return seqs, nil
}

// result makes the body of a reply from names and values in turn.
func result(pairs ...any) codec.Value {
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
