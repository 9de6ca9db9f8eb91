// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/triagemq/triagemq/client"
)

// A worker that is not made with package worker can be listed and paused, too, if it
// announces itself every half second.
func ExampleClient_AnnouncePool() {
	ctx := context.Background()
	c, err := client.Dial(ctx, connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	report := client.PoolReport{Name: "invoices", Instance: "process 1", Sources: []string{"orders"}, Slots: 4, Busy: 1}
	orders, err := c.AnnouncePool(ctx, report)
	if err != nil {
		log.Fatal(err)
	}
	if orders.Paused {
		fmt.Println("takes no more messages")
	} else {
		fmt.Println("goes on, as one of", orders.Instances)
	}
	report.Obeyed = orders // for the next report
	// Output: goes on, as one of 1
}
