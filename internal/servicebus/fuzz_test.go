// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
)

// FuzzAttach reads filters and properties that a peer made up.
func FuzzAttach(f *testing.F) {
	f.Add(codec.AppendValue(nil, codec.Map(codec.Symbol(sessionFilter), codec.String("x"))))
	f.Add(codec.AppendValue(nil, codec.Map(codec.Symbol(propTimeout), codec.Uint(5))))
	f.Fuzz(func(t *testing.T, raw []byte) {
		source := &frame.Source{Filter: raw}
		w := sessionRequestOf(source)
		if granted := w.granted(source, "id").Filter; granted != nil {
			if again := sessionRequestOf(&frame.Source{Filter: granted}); again.id == nil || *again.id != "id" {
				t.Fatalf("granted filter % x reads as %+v", granted, again)
			}
		}
		if d := acceptTimeoutOf(raw); d <= 0 || d > maxAcceptTimeout {
			t.Fatalf("timeout %v", d)
		}
		deadLetterOf(&frame.Error{Condition: names.DeadLetter, Info: raw})
	})
}
