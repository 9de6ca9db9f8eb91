// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// heap returns how much memory is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// list returns n texts that text makes of their numbers, with separators.
func list(n int, separator string, text func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = text(i)
	}
	return strings.Join(parts, separator)
}

// values returns n values by name.
func values(t *testing.T, n int) map[string]entity.Value {
	t.Helper()
	all := make(map[string]entity.Value, n)
	for i := range n {
		v, err := entity.NewValue(fmt.Sprint("value ", i))
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprint("p", i)] = v
	}
	return all
}

// What definitions are charged is what the heap grows by, about, when they are made and
// after the next start, whatever they consist of.
func TestCost(t *testing.T) {
	rules := func(n int, rule func(i int) entity.Rule) []entity.Rule {
		all := make([]entity.Rule, n)
		for i := range all {
			all[i] = rule(i)
			all[i].Name = fmt.Sprint("r", i)
		}
		return all
	}
	sql := func(text string) entity.Rule {
		return entity.Rule{Filter: entity.Filter{Kind: entity.SQLFilter, SQL: text}}
	}
	subscription := func(all []entity.Rule) func(b *brokertest.Broker, i int) error {
		return func(b *brokertest.Broker, i int) error {
			if i == 0 {
				if _, err := b.CreateTopic(t.Context(), entity.Topic{Name: "t"}); err != nil {
					return err
				}
			}
			_, err := b.CreateSubscription(t.Context(), "t", entity.Subscription{Name: fmt.Sprint("s", i), Rules: all})
			return err
		}
	}
	queue := func(q entity.Queue) func(b *brokertest.Broker, i int) error {
		return func(b *brokertest.Broker, i int) error {
			q.Name = fmt.Sprintf("queue-%06d", i)
			_, err := b.CreateQueue(t.Context(), q)
			return err
		}
	}
	policy := func(format string, args ...any) json.RawMessage { return fmt.Appendf(nil, format, args...) }
	hub := func(h entity.Hub) func(b *brokertest.Broker, i int) error {
		return func(b *brokertest.Broker, i int) error {
			h.Name = fmt.Sprintf("hub-%06d", i)
			_, err := b.CreateHub(t.Context(), h)
			return err
		}
	}
	var keys entity.AuthorizationRules
	for i := range 12 {
		keys = append(keys, entity.AuthorizationRule{KeyName: fmt.Sprint("k", i), Rights: []entity.Right{entity.Send, entity.Listen},
			PrimaryKey: strings.Repeat("p", 40), SecondaryKey: strings.Repeat("s", 40)})
	}
	var groups []entity.ConsumerGroup
	for i := range 900 {
		groups = append(groups, entity.ConsumerGroup{Name: fmt.Sprint("group", i), UserMetadata: "of a test"})
	}
	for _, c := range []struct {
		what string
		n    int
		most int64 // times what the heap grows by that may be charged; zero is 3
		make func(b *brokertest.Broker, i int) error
	}{
		{"queues", 1000, 0, queue(entity.Queue{})},
		{"user metadata", 1000, 0, queue(entity.Queue{UserMetadata: strings.Repeat("m", 1024)})},
		{"keys", 500, 0, queue(entity.Queue{AuthorizationRules: keys})},
		{"forwards", 200, 0, func(b *brokertest.Broker, i int) error {
			if i == 0 {
				if err := queue(entity.Queue{})(b, i); err != nil {
					return err
				}
			}
			return queue(entity.Queue{ForwardTo: "queue-000000"})(b, i+1)
		}},
		// Most of it is for measurements, which are there when the first message has come.
		{"policies with classes", 20, 25, queue(entity.Queue{Policy: policy(`{"classes":[%s]}`,
			list(100, ",", func(i int) string { return fmt.Sprintf(`{"name":"class%d","level":%d,"when":"p = %d"}`, i, i, i) }))})},
		{"policies with fair keys", 20, 0, queue(entity.Queue{Policy: policy(`{"fairKey":"tenant","keys":[%s]}`,
			list(1000, ",", func(i int) string { return fmt.Sprintf(`{"key":"key number %d","weight":%d}`, i, i+1) }))})},
		{"small rules", 10, 0, subscription(rules(800, func(i int) entity.Rule { return sql(fmt.Sprintf("priority = 'High' AND region = %d", i)) }))},
		{"comparisons", 10, 0, subscription(rules(200, func(int) entity.Rule {
			return sql(list(80, " OR ", func(i int) string { return fmt.Sprintf("a>%d", i) }))
		}))},
		{"long names", 10, 0, subscription(rules(200, func(i int) entity.Rule {
			return sql(list(10, " OR ", func(j int) string { return fmt.Sprintf("%s%d%d>1", strings.Repeat("n", 60), i, j) }))
		}))},
		{"lists", 10, 0, subscription(rules(200, func(n int) entity.Rule {
			return sql("a IN (" + list(240, ",", func(i int) string { return fmt.Sprint(i) }) + fmt.Sprintf(",%d)", 1000+n))
		}))},
		{"texts", 10, 0, subscription(rules(200, func(int) entity.Rule {
			return sql("a IN (" + list(120, ",", func(i int) string { return fmt.Sprintf("'v%d'", i) }) + ") AND b > 1")
		}))},
		{"patterns", 10, 0, subscription(rules(200, func(int) entity.Rule {
			return sql(list(40, " OR ", func(i int) string { return fmt.Sprintf("a LIKE '%%a%%b_%d%%'", i) }))
		}))},
		{"correlations", 10, 0, subscription(rules(200, func(int) entity.Rule {
			return entity.Rule{Filter: entity.Filter{Correlation: &entity.Correlation{Label: "label", Properties: values(t, 20)}}}
		}))},
		{"small correlations", 10, 0, subscription(rules(1000, func(i int) entity.Rule {
			return entity.Rule{Filter: entity.Filter{Correlation: &entity.Correlation{Label: fmt.Sprint("label", i)}}}
		}))},
		{"parameters", 10, 0, subscription(rules(200, func(int) entity.Rule {
			return entity.Rule{Filter: entity.Filter{Kind: entity.SQLFilter, SQL: "a = @p1 AND b = @p2", Parameters: values(t, 20)}}
		}))},
		{"actions", 10, 0, subscription(rules(100, func(int) entity.Rule {
			return entity.Rule{Action: entity.Action{SQL: list(30, ";", func(i int) string { return fmt.Sprintf("SET a%d = a%d + 1", i, i) })}}
		}))},
		{"hubs", 10, 0, hub(entity.Hub{PartitionCount: 1})},
		{"partitions", 4, 0, hub(entity.Hub{PartitionCount: 1024})},
		{"consumer groups", 10, 0, hub(entity.Hub{PartitionCount: 1, ConsumerGroups: groups})},
	} {
		t.Run(c.what, func(t *testing.T) {
			if c.most == 0 {
				c.most = 3
			}
			disk := vfs.OS(t.TempDir())
			for _, when := range []string{"new", "after a restart"} {
				before := heap()
				b, err := brokertest.Open(t.Context(), disk, queueserver.Options{})
				if err != nil {
					t.Fatal(err)
				}
				account := budget.NoLimit()
				b.ChargeDefinitions(account)
				if when == "new" {
					before = heap()
					for i := range c.n {
						if err := c.make(b, i); err != nil {
							t.Fatal(err)
						}
					}
				}
				grown, charged := (heap()-before)/int64(c.n), account.Used()/int64(c.n)
				t.Logf("%s: %d bytes each, %d charged", when, grown, charged)
				if charged < grown-grown/20 || charged > c.most*grown {
					t.Errorf("%s: %d are charged for each, and the heap has grown by %d", when, charged, grown)
				}
				if err := b.Stop(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
