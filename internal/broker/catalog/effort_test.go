// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
)

// An entity is expensive to send to after a message for which its conditions took long: of a
// queue its policy, of a topic its rules and the policies behind them.
func TestExpensiveEntities(t *testing.T) {
	const sql = "p LIKE '%_a_a_a_a_b_%'"
	policy := []byte(fmt.Sprintf(`{"classes":[{"name":"a","level":9,"when":%q}]}`, sql))
	c := start(t)
	if _, err := c.CreateQueue(t.Context(), entity.Queue{Name: "queue", Policy: policy}); err != nil {
		t.Fatal(err)
	}
	c.topic(t, entity.Topic{Name: "rules"}, entity.Subscription{Name: "s", Rules: []entity.Rule{{Name: "r", Filter: entity.Filter{SQL: sql}}}})
	c.topic(t, entity.Topic{Name: "policies"}, entity.Subscription{Name: "s", Policy: policy})
	for _, name := range []string{"queue", "rules", "policies"} {
		n := c.Entity(name)
		for _, size := range []int{100, 30_000} {
			d := message.Draft{Application: []message.Pair{{Name: "p", Value: codec.String(strings.Repeat("a", size))}}}
			c.send(t, n, d.Message())
			if got, want := n.Expensive(), size > 1000; got != want {
				t.Errorf("%s is expensive after a property of %d bytes: %v, want %v", name, size, got, want)
			}
		}
	}
}
