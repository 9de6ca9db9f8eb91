// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/stream"
)

func TestStartFilter(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	tests := []struct {
		selector string
		want     stream.Start
	}{
		{"amqp.annotation.x-opt-offset > '-1'", stream.Earliest()},
		{"amqp.annotation.x-opt-offset >= '-1'", stream.Earliest()},
		{"amqp.annotation.x-opt-offset > '@latest'", stream.Latest()},
		{"amqp.annotation.x-opt-offset >= '@latest'", stream.Latest()},
		{"amqp.annotation.x-opt-offset > '17'", stream.AfterSeq(17)},
		{"amqp.annotation.x-opt-offset >= '17'", stream.FromSeq(17)},
		{"amqp.annotation.x-opt-sequence-number > '0'", stream.AfterSeq(0)},
		{"amqp.annotation.x-opt-sequence-number >= '0'", stream.FromSeq(0)},
		{"amqp.annotation.x-opt-sequence-number >= '-1'", stream.Earliest()},
		{"amqp.annotation.x-opt-enqueued-time > '1700000000123'", stream.AfterTime(at)},
		{"amqp.annotation.x-opt-enqueued-time >= '1700000000123'", stream.FromTime(at)},
		{"amqp.annotation.x-opt-enqueued-time > '1700000000123.75'", stream.AfterTime(at)},
		{"amqp.annotation.x-opt-enqueued-time > '-62135596800000'", stream.AfterTime(time.UnixMilli(-62135596800000))},
		{"amqp.annotation.x-opt-enqueuedtimeutc > '1700000000123'", stream.AfterTime(at)},
		{"x-opt-offset>'17'", stream.AfterSeq(17)},
		{"  amqp.annotation.x-opt-offset  >=  17  ", stream.FromSeq(17)},
		{"amqp.annotation.x-opt-offset > '9223372036854775807'", stream.AfterSeq(1<<63 - 1)},
	}
	for _, tt := range tests {
		if got, err := parseStart(tt.selector); err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v, want %+v", tt.selector, got, err, tt.want)
		}
	}
}

func TestBadStartFilterIsRefused(t *testing.T) {
	tests := []struct{ selector, condition string }{
		{"", names.ArgumentOutOfRange},
		{"1=1", names.ArgumentOutOfRange},
		{"amqp.annotation.x-opt-offset < '5'", names.ArgumentOutOfRange},
		{"amqp.annotation.x-opt-offset = '5'", names.ArgumentOutOfRange},
		{"amqp.annotation.x-opt-color > '5'", names.ArgumentOutOfRange},
		{"amqp.annotation.x-opt-sequence-number > 'five'", names.ArgumentOutOfRange},
		{"amqp.annotation.x-opt-sequence-number > '99999999999999999999'", names.ArgumentOutOfRange},
		{"amqp.annotation.x-opt-enqueued-time > '2024-01-01'", names.ArgumentOutOfRange},
		{"amqp.annotation.x-opt-enqueued-time > '", names.ArgumentOutOfRange},
		{"amqp.annotation.x-opt-offset > '2:17:3'", names.InvalidOffset},
		{"amqp.annotation.x-opt-offset > '" + strings.Repeat("9", 60_000) + "'", names.InvalidOffset},
		{strings.Repeat("ü", 60_000), names.ArgumentOutOfRange},
	}
	for _, tt := range tests {
		_, err := parseStart(tt.selector)
		e, ok := errors.AsType[*endpoint.Error](err)
		if !ok || e.Condition != tt.condition {
			t.Errorf("%.80s: %v, want %s", tt.selector, err, tt.condition)
			continue
		}
		if len(e.Description) > 700 {
			t.Errorf("%.80s: the error has %d bytes", tt.selector, len(e.Description))
		}
	}
}

// described makes a described value, whose descriptor is a number or a symbol.
func described(descriptor, v codec.Value) codec.Value {
	return codec.Raw(codec.AppendValue(codec.AppendValue([]byte{0}, descriptor), v))
}

func TestFilterOfAnAttach(t *testing.T) {
	selector := codec.String("amqp.annotation.x-opt-offset > '@latest'")
	tests := []struct {
		name   string
		filter codec.Value
		want   stream.Start
		refuse bool
	}{
		{"none", codec.Value{}, stream.Earliest(), false},
		{"descriptor as a number", codec.Map(codec.Symbol(names.SelectorFilter), described(codec.Ulong(selectorCode), selector)), stream.Latest(), false},
		{"descriptor as a symbol", codec.Map(codec.Symbol(names.SelectorFilter), described(codec.Symbol(names.SelectorFilter), selector)), stream.Latest(), false},
		{"no descriptor", codec.Map(codec.String(names.SelectorFilter), selector), stream.Latest(), false},
		{"another name", codec.Map(codec.Symbol("selector"), described(codec.Ulong(selectorCode), selector)), stream.Latest(), false},
		{"of another kind", codec.Map(codec.Symbol("apache.org:no-local-filter:list"), codec.List()), stream.Earliest(), false},
		{"not a text", codec.Map(codec.Symbol(names.SelectorFilter), codec.Int(1)), stream.Start{}, true},
		{"not a map", codec.Int(1), stream.Earliest(), false},
	}
	for _, tt := range tests {
		source := &frame.Source{}
		if !tt.filter.IsNull() {
			source.Filter = codec.AppendValue(nil, tt.filter)
		}
		got, err := startOf(source)
		if got != tt.want || (err != nil) != tt.refuse {
			t.Errorf("%s: %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
	if got, err := startOf(nil); err != nil || got != stream.Earliest() {
		t.Errorf("no source: %+v, %v", got, err)
	}
}

// FuzzStartFilter checks that a filter of any form is read or refused.
func FuzzStartFilter(f *testing.F) {
	for _, s := range []string{"amqp.annotation.x-opt-offset > '-1'", "x-opt-enqueued-time>=1.5", "> '", "x-opt-offset > '@latest'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, selector string) {
		if _, err := parseStart(selector); err != nil && len(err.Error()) > 1000 {
			t.Fatalf("an error of %d bytes", len(err.Error()))
		}
		startOf(&frame.Source{Filter: []byte(selector)})
	})
}
