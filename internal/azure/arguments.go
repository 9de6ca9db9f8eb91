// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure/wire"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/limits"
)

// Arguments of a request are read leniently where clients differ (any integer
// type, symbol or string) and refused clearly where they make no sense.

// BadArgument refuses an argument of a request.
func BadArgument(name, want string) error {
	return endpoint.Errorf(names.ArgumentError, "Argument '%s' must be %s.", name, want)
}

// Text returns a string argument; nil when it is absent or null.
func (k *Call) Text(name string) *string {
	v, _ := k.body.Lookup(name)
	s, ok := v.Str()
	if !ok {
		return nil
	}
	return &s
}

// MustText returns a string argument.
func (k *Call) MustText(name string) (string, error) {
	s := k.Text(name)
	if s == nil {
		return "", BadArgument(name, "a string")
	}
	return *s, nil
}

// Count returns a number between zero and most.
func (k *Call) Count(name string, most int) (int, error) {
	v, _ := k.body.Lookup(name)
	n, ok := wire.Integer(v)
	if !ok || n < 0 {
		return 0, BadArgument(name, "a number that is not negative")
	}
	return int(min(n, int64(most))), nil
}

// Time returns a timestamp.
func (k *Call) Time(name string) (time.Time, error) {
	v, _ := k.body.Lookup(name)
	t, ok := v.Time()
	if !ok {
		return time.Time{}, BadArgument(name, "a timestamp")
	}
	return t, nil
}

// List returns the elements of an array or list.
func (k *Call) List(name string) ([]codec.Value, error) {
	v, _ := k.body.Lookup(name)
	if v.Kind() != codec.KindArray && v.Kind() != codec.KindList {
		return nil, BadArgument(name, "an array")
	}
	var vs []codec.Value
	for e := range v.List() {
		if len(vs) == limits.Tokens {
			return nil, BadArgument(name, fmt.Sprintf("a list of at most %d elements", limits.Tokens))
		}
		vs = append(vs, e)
	}
	if len(vs) == 0 {
		return nil, BadArgument(name, "not empty")
	}
	return vs, nil
}
