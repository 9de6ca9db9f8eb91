// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/client/admin"
)

// Create a queue with a policy, and see what waits in it and why.
func Example() {
	ctx := context.Background()
	a, err := admin.New(connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	_, err = a.CreateQueue(ctx, admin.Queue{
		Name:   "orders",
		Policy: json.RawMessage(`{"classes": [{"name": "paid", "level": 8, "when": "plan = 'paid'"}]}`),
	})
	if err != nil {
		log.Fatal(err)
	}

	c, err := client.Dial(ctx, connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	sender, err := c.OpenSender(ctx, "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, plan := range []string{"free", "paid", "paid"} {
		if err := sender.Send(ctx, &client.Message{Properties: map[string]any{"plan": plan}}); err != nil {
			log.Fatal(err)
		}
	}

	q, err := a.Queue(ctx, "orders")
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range q.Runtime.Levels {
		fmt.Printf("level %d: %d\n", l.Level, l.Ready)
	}
	x, err := a.Explain(ctx, "orders", 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("message 1 is %s with %d ahead\n", x.State, x.Ahead)
	// Output:
	// level 8: 2
	// level 4: 1
	// message 1 is waiting with 2 ahead
}

// Route messages by rules.
func ExampleClient_CreateSubscription() {
	ctx := context.Background()
	a, err := admin.New(connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	if _, err := a.CreateTopic(ctx, admin.Topic{Name: "events"}); err != nil {
		log.Fatal(err)
	}
	s, err := a.CreateSubscription(ctx, "events", admin.Subscription{
		Name:  "large",
		Rules: []admin.Rule{{Name: "by-size", Filter: admin.Filter{SQL: "size > @least", Parameters: admin.Values{"least": int64(100)}}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Definition.Rules[0].Name, s.Definition.Rules[0].Filter.SQL, s.Definition.LockDuration)

	_, err = a.CreateTopic(ctx, admin.Topic{Name: "events"})
	fmt.Println(errors.Is(err, client.ErrExists))
	// Output:
	// by-size size > @least 1m
	// true
}

// Give a program a key for one queue.
func ExampleClient_SetKey() {
	ctx := context.Background()
	a, err := admin.New(connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	if _, err := a.PutQueue(ctx, admin.Queue{Name: "jobs"}); err != nil {
		log.Fatal(err)
	}
	key, err := a.SetKey(ctx, "jobs", admin.Key{Name: "worker", Rights: []admin.Right{admin.Listen}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(key.Name, key.Rights, key.PrimaryKey != "")
	// Output: worker [Listen] true
}
