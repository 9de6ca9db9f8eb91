// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/triagemq/triagemq/client"
)

// A member of a consumer group reads the partitions that the broker gives it. Package
// processor does this, and what is left out here: hand-over, reports, many partitions.
func ExampleGroup() {
	ctx := context.Background()
	c, err := client.Dial(ctx, connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	send, err := c.OpenSender(ctx, "visits/Partitions/0", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := send.Send(ctx, &client.Message{Body: []byte("hello")}); err != nil {
		log.Fatal(err)
	}

	group := c.Group("visits", "")
	member, err := group.Join(ctx, client.MemberOptions{ID: "web-1"})
	if err != nil {
		log.Fatal(err)
	}
	defer member.Close()
	var mine client.Assignment
	for len(mine.Grants) == 0 {
		if mine, err = member.Next(ctx); err != nil {
			log.Fatal(err)
		}
	}
	grant := mine.Grants[0]
	o := &client.EventReaderOptions{Epoch: &grant.Epoch}
	if grant.Checkpoint != client.NoCheckpoint {
		o.After = &grant.Checkpoint
	}
	reader, err := c.OpenEventReader(ctx, "visits", grant.Partition, o)
	if err != nil {
		log.Fatal(err)
	}
	events, err := reader.Receive(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	each, err := group.Checkpoint(ctx, []client.Checkpoint{{Partition: grant.Partition, Epoch: grant.Epoch, SeqNo: events[0].SeqNo}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(events[0].Body), each[0])
	// Output: hello <nil>
}
