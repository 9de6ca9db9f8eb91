// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

func TestSafeMessageTakenBehindANewOne(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("q", queue.Config{LockFor: time.Minute})
	r.send(id, 1, "old")
	r.settle()
	k := r.attach(id, Main, queue.Want{})

	// In one step the consumer takes the new message, which is not durable,
	// and then the old one, which is.
	r.send(id, 9, "new")
	k.c.Allow(2)
	r.step()
	if len(k.got) != 0 {
		t.Fatalf("before the sync: %v delivered, want none", k.bodies())
	}
	r.settle()
	if want := []string{"new", "old"}; !slices.Equal(k.bodies(), want) {
		t.Fatalf("after the sync: %v delivered, want %v", k.bodies(), want)
	}
}
