// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
)

// The tokens of a client are for entities that were deleted and made again since. It puts new
// ones, and goes on.
func TestClientsUseEntitiesThatWereMadeAgain(t *testing.T) {
	c := startCLI(t, "queues: [{name: q}]\nhubs: [{name: h, partitionCount: 1}]")
	conn := c.Client()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	uses := map[string]func() error{
		"send": func() error {
			s, err := conn.OpenSender(ctx, "q", nil)
			if err != nil {
				return err
			}
			defer s.Close()
			return s.Send(ctx, &client.Message{Body: []byte("x")})
		},
		"receive": func() error {
			r, err := conn.OpenReceiver(ctx, "q", nil)
			if err != nil {
				return err
			}
			defer r.Close()
			_, err = r.Poll(ctx, 1)
			return err
		},
		"peek": func() error {
			r, err := conn.OpenReceiver(ctx, "q", nil)
			if err != nil {
				return err
			}
			defer r.Close()
			_, err = r.Peek(ctx, 0, 1)
			return err
		},
		"partitions": func() error {
			_, err := conn.Partitions(ctx, "h")
			return err
		},
		"read": func() error {
			r, err := conn.OpenEventReader(ctx, "h", "0", nil)
			if err != nil {
				return err
			}
			defer r.Close()
			brief, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			if _, err = r.Receive(brief, 1); brief.Err() != nil {
				return nil // there are no events
			}
			return err
		},
	}
	for range 3 {
		for name, use := range uses {
			if err := use(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		c.do("queue", "delete", "q", "--force")
		c.do("queue", "create", "q")
		c.do("hub", "delete", "h", "--force")
		c.do("hub", "create", "h", "--partition-count", "1")
	}
}
