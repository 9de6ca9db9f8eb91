// SPDX-License-Identifier: Apache-2.0

package management

import (
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
)

// What is read of a request is bounded while it is read.
func TestChangesAreReadUpToTheLimit(t *testing.T) {
	vs := make([]codec.Value, 0, 400_000)
	for range cap(vs) / 2 {
		vs = append(vs, codec.String(""), codec.Value{})
	}
	changes := Changes(codec.Map(vs...))
	if len(changes) > limits.Properties+1 {
		t.Errorf("%d changes are read, want %d at most", len(changes), limits.Properties+1)
	}
	if _, err := message.CheckChanges(changes); err == nil {
		t.Error("they are fine, want an error")
	}
}
