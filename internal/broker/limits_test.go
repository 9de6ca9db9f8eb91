// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/vfs"
)

// A4: names that every record of a message repeats are limited where they come in,
// so that no group of records becomes larger than the log takes.
func TestLongNamesAreRefusedAtTheDoor(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "sessions", RequiresSession: true})
	r.queue(entity.Queue{Name: "unique", RequiresDuplicateDetection: true})
	r.ranked("plain", `{"fairKey": "tenant"}`)
	r.topic(entity.Topic{Name: "topic"}, entity.Subscription{Name: "s"})
	session := func(id string) *message.Message { d := message.Draft{SessionID: id}; return d.Message() }
	numbered := func(id string) *message.Message { d := message.Draft{MessageID: codec.String(id)}; return d.Message() }
	fits, long := strings.Repeat("ü", 128), strings.Repeat("ü", 129)
	for _, tt := range []struct {
		addr string
		make func(string) *message.Message
	}{
		{"sessions", session},
		{"plain", session},
		{"topic", session},
		{"unique", numbered},
		{"plain", func(key string) *message.Message { return msg("x", "tenant", key) }},
	} {
		if err := r.trySend(tt.addr, tt.make(fits)); err != nil {
			t.Errorf("%s: a name of 128 characters: %v", tt.addr, err)
		}
		if err := r.trySend(tt.addr, tt.make(fits), tt.make(long)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: a name of 129 characters: %v, want %v", tt.addr, err, ErrInvalid)
		}
	}
	if err := r.SetSessionState(t.Context(), "sessions", long, []byte("x")); !errors.Is(err, ErrInvalid) {
		t.Errorf("state of a session with a long name: %v, want %v", err, ErrInvalid)
	}
}

// A4: a rule that makes a name too long is an incident of its subscription; it does
// not turn the publisher away.
func TestRuleThatMakesALongNameLeavesADeadLetter(t *testing.T) {
	r := start(t)
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "good"}, entity.Subscription{Name: "bad"})
	if err := r.DeleteRule(t.Context(), "t", "bad", "$Default"); err != nil {
		t.Fatal(err)
	}
	rule := sql("long", "1=1")
	rule.Action = entity.Action{SQL: "SET sys.SessionId = '" + strings.Repeat("x", 200) + "'"}
	if _, err := r.CreateRule(t.Context(), "t", "bad", rule); err != nil {
		t.Fatal(err)
	}
	r.send("t", msg("hello"))
	for addr, want := range map[string]int64{"t/Subscriptions/good": 1, "t/Subscriptions/bad": 0} {
		rt, err := r.Runtime(t.Context(), addr)
		if err != nil {
			t.Fatal(err)
		}
		if rt.Active != want || rt.Dead != 1-want {
			t.Errorf("%s: %d active, %d dead, want %d and %d", addr, rt.Active, rt.Dead, want, 1-want)
		}
	}
}

// Issue 10, limits at the door: a message beyond a limit is refused with all of its
// batch, by every way in, and whatever entity it is for.
func TestMessagesBeyondALimitAreRefused(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "s"})
	long := strings.Repeat("x", 129)
	large := func(n int) message.Pair {
		return message.Pair{Name: "p", Value: codec.Binary(make([]byte, n))}
	}
	for name, d := range map[string]message.Draft{
		"message id":          {MessageID: codec.String(long)},
		"partition key":       {Annotations: []message.Pair{{Name: message.AnnotationPartitionKey, Value: codec.String(long)}}},
		"reply-to session id": {ReplyToSessionID: long},
		"property":            {Application: []message.Pair{large(33 << 10)}},
		"properties":          {Application: []message.Pair{large(25 << 10), large(25 << 10), large(25 << 10)}},
		"annotations":         {Annotations: []message.Pair{large(65 << 10)}},
	} {
		for _, addr := range []string{"q", "t"} {
			if err := r.trySend(addr, msg("fine"), d.Message()); !errors.Is(err, limits.ErrExceeded) || !errors.Is(err, ErrInvalid) {
				t.Errorf("%s to %s: %v, want %v", name, addr, err, limits.ErrExceeded)
			}
			if _, err := r.Schedule(t.Context(), addr, []*message.Message{d.Message()}, SenderOptions{}); !errors.Is(err, limits.ErrExceeded) {
				t.Errorf("%s scheduled in %s: %v, want %v", name, addr, err, limits.ErrExceeded)
			}
		}
	}
	for _, addr := range []string{"q", "t/Subscriptions/s"} {
		if c := r.counts(addr); c.Total() != 0 {
			t.Errorf("%s has %+v, want nothing", addr, c)
		}
	}
}

// Number 2: a batch has a limit of messages.
func TestBatchOfTooManyMessagesIsRefused(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	batch := make([]*message.Message, limits.Batch+1)
	for i := range batch {
		batch[i] = msg("")
	}
	if err := r.trySend("q", batch...); !errors.Is(err, limits.ErrExceeded) {
		t.Errorf("%d messages: %v, want %v", len(batch), err, limits.ErrExceeded)
	}
	if err := r.trySend("q", batch[1:]...); err != nil {
		t.Errorf("%d messages: %v, want nil", len(batch)-1, err)
	}
}

// Number 2: the copies of one operation are bounded before any is stored, whatever
// the batch and the subscriptions are. A single message goes to all subscriptions.
func TestCopiesOfOneOperationAreBounded(t *testing.T) {
	r := startWith(t, vfs.NewMem(), wal.Options{SegmentSize: 16 << 20})
	const subs = 50
	r.topic(entity.Topic{Name: "t"})
	for i := range subs {
		if _, err := r.CreateSubscription(t.Context(), "t", entity.Subscription{Name: fmt.Sprint("s", i)}); err != nil {
			t.Fatal(err)
		}
	}
	batch := make([]*message.Message, limits.Copies/subs+1)
	for i := range batch {
		batch[i] = msg("")
	}
	if err := r.trySend("t", batch...); !errors.Is(err, limits.ErrExceeded) {
		t.Errorf("%d × %d copies: %v, want %v", len(batch), subs, err, limits.ErrExceeded)
	}
	if c := r.counts("t/Subscriptions/s0"); c.Total() != 0 {
		t.Errorf("a subscription has %+v after a batch that was refused, want nothing", c)
	}
	if err := r.trySend("t", batch[1:]...); err != nil {
		t.Errorf("%d × %d copies: %v, want nil", len(batch)-1, subs, err)
	}
	if c := r.counts("t/Subscriptions/s49"); c.Active != limits.Copies/subs {
		t.Errorf("a subscription has %+v, want %d messages", c, limits.Copies/subs)
	}
}

// Number 2: so are the bodies that rule actions make. A batch can be sent in parts and
// is refused; a single message is stored, and is a dead letter where there is no
// room for a copy.
func TestBodiesMadeByActionsAreBounded(t *testing.T) {
	r := startWith(t, vfs.NewMem(), wal.Options{SegmentSize: 64 << 20})
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "plain"}, entity.Subscription{Name: "many", Rules: []entity.Rule{}})
	const rules = 100 // × 256 KiB are more than 16 MiB
	var all []entity.Rule
	for i := range rules {
		rule := sql(fmt.Sprint("r", i), "1=1")
		rule.Action = entity.Action{SQL: "SET x = 1"}
		all = append(all, rule)
	}
	if _, err := r.UpdateSubscription(t.Context(), "t", entity.Subscription{Name: "many", Rules: all}); err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 255<<10)
	if err := r.trySend("t", msg(large), msg(large)); !errors.Is(err, limits.ErrExceeded) {
		t.Errorf("a batch: %v, want %v", err, limits.ErrExceeded)
	}
	if c := r.counts("t/Subscriptions/plain"); c.Total() != 0 {
		t.Errorf("a subscription has %+v after a batch that was refused, want nothing", c)
	}
	if err := r.trySend("t", msg(large)); err != nil {
		t.Errorf("a single message: %v, want nil", err)
	}
	if c := r.counts("t/Subscriptions/plain"); c.Active != 1 {
		t.Errorf("the subscription without actions has %+v, want one message", c)
	}
	c := r.counts("t/Subscriptions/many")
	if most := int64(limits.CopyBytes / len(large)); c.Active == 0 || c.Active > most || c.Dead != 1 {
		t.Errorf("the subscription with actions has %+v, want up to %d messages and one dead letter", c, most)
	}
}
