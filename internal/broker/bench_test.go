// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/policy"
)

// tenClasses is a policy whose first nine conditions fail for a message of the
// tenth class.
func tenClasses(b *testing.B) *policy.Policy {
	b.Helper()
	var cs []string
	for i := range 9 {
		cs = append(cs, fmt.Sprintf(`{"name": "c%d", "level": %d, "when": "plan = 'plan %d' AND kind <> 'report'", "objective": {"wait": "10s"}}`, i, 200-i, i))
	}
	cs = append(cs, `{"name": "last", "level": 3, "when": "plan = 'free' OR region LIKE 'eu%'", "objective": {"wait": "10s"}}`)
	p, err := policy.Parse([]byte(`{"classes": [` + strings.Join(cs, ",") + `]}`))
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkClassify is what ten rules add to the sending of a message.
func BenchmarkClassify(b *testing.B) {
	c := catalog.NewClassifier(tenClasses(b))
	m := msg(strings.Repeat("x", 256), "plan", "free", "kind", "order", "region", "us-west", "tenant", "acme")
	b.ReportAllocs()
	for b.Loop() {
		if v := c.Classify(m); v.Class != 10 {
			b.Fatalf("class %d", v.Class)
		}
	}
}
