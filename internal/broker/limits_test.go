// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
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
	if err := r.SetSessionState(t.Context(), "sessions", queue.SessionLock{ID: long}, []byte("x")); !errors.Is(err, ErrInvalid) {
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
// space for a copy.
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

// Number 13: what a settlement writes into messages is bounded before any of them is
// settled: each property, all together, and times the messages.
func TestSettlementsThatWriteTooMuchAreRefused(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	const n = 2100
	r.send("q", slices.Repeat([]*message.Message{msg("x")}, n)...)
	rec, k := r.receive("q", n, ReceiverOptions{})
	tokens := make([]queue.Token, n)
	for i := range tokens {
		tokens[i] = (<-k.ds).Token
	}
	change := func(size int) message.Change {
		return message.Change{Name: "p", Value: codec.Binary(make([]byte, size))}
	}
	for name, o := range map[string]Outcome{
		"one property":       {Disposition: Abandon, Properties: []message.Change{change(4 << 20)}},
		"all properties":     {Disposition: Defer, Properties: []message.Change{change(30 << 10), change(30 << 10), change(30 << 10)}},
		"times the messages": {Disposition: Defer, Properties: []message.Change{change(30 << 10), change(30 << 10)}},
		"reasons":            {Disposition: DeadLetter, Reason: strings.Repeat("r", 33<<10), Description: strings.Repeat("d", 33<<10)},
	} {
		if err := r.Settle(t.Context(), "q", tokens, o); !errors.Is(err, limits.ErrExceeded) || !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want %v", name, err, limits.ErrExceeded)
		}
		errs := make(chan []error, 1)
		rec.Settle(tokens, o, func(es []error) { errs <- es })
		if es := <-errs; len(es) != n || !errors.Is(es[0], limits.ErrExceeded) {
			t.Errorf("%s by the receiver: %d errors, want %d times %v", name, len(es), n, limits.ErrExceeded)
		}
	}
	if c := r.counts("q"); c.Locked != n || c.Dead != 0 || c.Deferred != 0 {
		t.Errorf("after all that: %+v, want all messages locked", c)
	}
	long := Outcome{Disposition: DeadLetter, Reason: strings.Repeat("r", 33<<10), Description: strings.Repeat("d", 33<<10)}
	if err := r.Settle(t.Context(), "q", tokens[:1], long); err != nil {
		t.Errorf("a single message with a long reason: %v, want nil: it is cut", err)
	}
	if err := r.Settle(t.Context(), "q", tokens[1:], Outcome{Disposition: Complete}); err != nil {
		t.Errorf("complete: %v, want nil", err)
	}
}

// Number 13: nor does a message grow with each delivery.
func TestMessageDoesNotGrowWithEachDelivery(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q", MaxDeliveryCount: 100})
	r.send("q", msg("x"))
	rec, k := r.receive("q", 100, ReceiverOptions{})
	for i := range 3 {
		d := <-k.ds
		errs := make(chan []error, 1)
		o := Outcome{Disposition: Abandon, Properties: []message.Change{{Name: fmt.Sprint(i), Value: codec.Binary(make([]byte, 30<<10))}}}
		rec.Settle([]queue.Token{d.Token}, o, func(es []error) { errs <- es })
		es := <-errs
		if i < 2 && es != nil {
			t.Errorf("delivery %d: %v, want nil", i, es)
		}
		if i == 2 && (len(es) != 1 || !errors.Is(es[0], limits.ErrExceeded)) {
			t.Errorf("delivery %d: %v, want %v", i, es, limits.ErrExceeded)
		}
	}
}

// Number 12: the quota of a queue counts what messages take, not what is in them: a
// queue of 1 MiB does not have a hundred thousand messages of ten bytes.
func TestQuotaCountsWhatIsStored(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "plain", MaxSizeInMegabytes: 1})
	r.queue(entity.Queue{Name: "sessions", MaxSizeInMegabytes: 1, RequiresSession: true})
	made := 0
	for addr, most := range map[string]int64{"plain": 1 << 20 / 128, "sessions": 1<<20/512 + 100} {
		for {
			batch := make([]*message.Message, 100)
			for i := range batch {
				made++
				d := message.Draft{SessionID: fmt.Sprint(made)}
				batch[i] = d.Message()
				if addr == "plain" {
					batch[i] = msg("")
				}
			}
			err := r.trySend(addr, batch...)
			if errors.Is(err, ErrQuota) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if made > 100_000 {
				break
			}
		}
		if c := r.counts(addr); c.Active > most || c.Active < most/3 {
			t.Errorf("%s holds %d messages when it is full, want about %d at most", addr, c.Active, most)
		}
	}
}

// Number 1: states of sessions are limited in size, and count toward the quota.
func TestSessionStatesAreBounded(t *testing.T) {
	r := startWith(t, vfs.NewMem(), wal.Options{SegmentSize: 4 << 20})
	r.queue(entity.Queue{Name: "q", RequiresSession: true, MaxSizeInMegabytes: 1})
	locks := map[string]queue.SessionLock{}
	hold := func(id string) queue.SessionLock {
		if _, ok := locks[id]; !ok {
			rec, err := r.OpenReceiver(t.Context(), "q", ReceiverOptions{Session: &id, Sink: newSink()})
			if err != nil {
				t.Fatal(err)
			}
			locks[id] = rec.SessionLock()
		}
		return locks[id]
	}
	set := func(id string, size int) error {
		return r.SetSessionState(t.Context(), "q", hold(id), make([]byte, size))
	}
	if err := set("a", 256<<10+1); !errors.Is(err, limits.ErrExceeded) {
		t.Errorf("a state of more than a message: %v, want %v", err, limits.ErrExceeded)
	}
	if err := set("a", 256<<10); err != nil {
		t.Errorf("a state as large as a message: %v, want nil", err)
	}
	for i := range 10 {
		if err := set("a", 255<<10); err != nil {
			t.Fatalf("again: %v, want nil: it takes the place of the one before", err)
		}
		err := set(fmt.Sprint(i), 255<<10)
		if i == 9 && !errors.Is(err, ErrQuota) {
			t.Errorf("11 states of 255 KiB in 1 MiB: %v, want %v", err, ErrQuota)
		}
	}
	if err := r.trySend("q", func() *message.Message {
		d := message.Draft{SessionID: "a", Body: make([]byte, 200<<10)}
		return d.Message()
	}()); !errors.Is(err, ErrQuota) {
		t.Errorf("send: %v, want %v", err, ErrQuota)
	}
	if err := r.SetSessionState(t.Context(), "q", hold("a"), nil); err != nil {
		t.Errorf("clear a state: %v, want nil", err)
	}
	long := strings.Repeat("x", 129)
	if _, err := r.OpenReceiver(t.Context(), "q", ReceiverOptions{Session: &long, Sink: newSink()}); !errors.Is(err, limits.ErrExceeded) {
		t.Errorf("accept a session with a long id: %v, want %v", err, limits.ErrExceeded)
	}
}

// Number 3: rules are limited in number and size, and so is what they make together.
func TestRulesBeyondALimitAreRefused(t *testing.T) {
	r := startWith(t, vfs.NewMem(), wal.Options{SegmentSize: 16 << 20})
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "a"}, entity.Subscription{Name: "b"})
	label := entity.Rule{Name: "label", Filter: entity.Filter{Correlation: &entity.Correlation{Label: strings.Repeat("x", 39<<17)}}}
	if _, err := r.CreateRule(t.Context(), "t", "a", label); !errors.Is(err, ErrInvalid) {
		t.Errorf("a rule with a large label: %v, want %v", err, ErrInvalid)
	}
	rules := func(n int, text string) []entity.Rule {
		rs := make([]entity.Rule, n)
		for i := range rs {
			rs[i] = sql(fmt.Sprint("r", i), "x = '"+text+"'")
		}
		return rs
	}
	set := func(sub string, rs []entity.Rule) error {
		_, err := r.UpdateSubscription(t.Context(), "t", entity.Subscription{Name: sub, Rules: rs})
		return err
	}
	if err := set("a", rules(limits.Rules+1, "y")); !errors.Is(err, ErrQuota) {
		t.Errorf("too many rules: %v, want %v", err, ErrQuota)
	}
	if err := set("a", rules(limits.Rules, strings.Repeat("y", 1000))); !errors.Is(err, limits.ErrExceeded) {
		t.Errorf("rules of 2 MB: %v, want %v", err, limits.ErrExceeded)
	}
	acting := rules(limits.RuleActions, "y")
	for i := range acting {
		acting[i].Action = entity.Action{SQL: "SET z = 1"}
	}
	if err := set("a", acting); err != nil {
		t.Errorf("as many actions as a topic may have: %v, want nil", err)
	}
	one := sql("one", "1=1")
	one.Action = entity.Action{SQL: "SET z = 1"}
	if _, err := r.CreateRule(t.Context(), "t", "b", one); !errors.Is(err, ErrQuota) {
		t.Errorf("one action more, in another subscription: %v, want %v", err, ErrQuota)
	}
	if err := set("b", []entity.Rule{one}); !errors.Is(err, ErrQuota) {
		t.Errorf("one action more, by an update: %v, want %v", err, ErrQuota)
	}
	if _, err := r.CreateSubscription(t.Context(), "t", entity.Subscription{Name: "c", Rules: []entity.Rule{one}}); !errors.Is(err, ErrQuota) {
		t.Errorf("one action more, in a new subscription: %v, want %v", err, ErrQuota)
	}
	r.send("t", msg("x"))
	r = r.restart()
	wantBodies(t, "after a restart", r.take("t/Subscriptions/b"), "x")
}

// Number 3: a definition that does not fit into a group of the log is refused and
// does not stop the shard.
func TestDefinitionThatIsTooLargeForTheLogIsRefused(t *testing.T) {
	r := start(t) // with segments of 1 MiB
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "a"})
	rules := make([]entity.Rule, 900)
	for i := range rules {
		rules[i] = sql(fmt.Sprint("r", i), "x = '"+strings.Repeat("y", 1000)+"'")
	}
	if _, err := r.UpdateSubscription(t.Context(), "t", entity.Subscription{Name: "a", Rules: rules}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("update: %v, want %v", err, ErrTooLarge)
	}
	if _, err := r.CreateSubscription(t.Context(), "t", entity.Subscription{Name: "b", Rules: rules}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("create: %v, want %v", err, ErrTooLarge)
	}
	if _, err := r.Subscription("t", "b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("what was refused: %v, want %v", err, ErrNotFound)
	}
	r.send("t", msg("x"))
	r = r.restart()
	wantBodies(t, "after a restart", r.take("t/Subscriptions/a"), "x")
}

// Issue 10: SQL of policies is limited at the door, and old policies stay.
func TestPoliciesBeyondALimitAreRefused(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	condition := func(n int) string { return "x = '" + strings.Repeat("y", n-6) + "'" }
	class := func(n int) string {
		return fmt.Sprintf(`{"classes": [{"name": "c", "level": 8, "when": %q}]}`, condition(n))
	}
	if _, err := r.SetPolicy(t.Context(), "q", []byte(class(1024))); err != nil {
		t.Errorf("a condition of 1,024 characters: %v, want nil", err)
	}
	for name, raw := range map[string]string{
		"condition": class(1025),
		"fair key":  fmt.Sprintf(`{"fairKey": %q}`, "'"+strings.Repeat("y", 1023)+"'"),
		"all of it": fmt.Sprintf(`{"alerts": {"webhook": "http://localhost/%s"}}`, strings.Repeat("x", 257<<10)),
	} {
		if _, err := r.SetPolicy(t.Context(), "q", []byte(raw)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want %v", name, err, ErrInvalid)
		}
		if _, err := r.CreateQueue(t.Context(), entity.Queue{Name: "other", Policy: []byte(raw)}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s of a new queue: %v, want %v", name, err, ErrInvalid)
		}
	}
	n := r.Entity("q")
	def := *n.Definition()
	q := *def.Queue
	q.Policy = []byte(class(5000))
	def.Queue = &q
	r.store(n, def)
	r = r.restart() // a policy of an earlier version stays
	if got, err := r.Policy("q"); err != nil || len(got.Policy) < 5000 {
		t.Errorf("a policy of an earlier version: %d bytes, %v", len(got.Policy), err)
	}
}

// Number 12: what is published straight into dead letters counts, too. A client that may
// send could fill the disk with messages that a subscription cannot take.
func TestDeadLettersByPublishingAreBounded(t *testing.T) {
	r := startWith(t, vfs.NewMem(), wal.Options{SegmentSize: 4 << 20})
	r.topic(entity.Topic{Name: "t", MaxSizeInMegabytes: 1}, entity.Subscription{Name: "s", RequiresSession: true})
	n := 0
	for ; n < 20; n++ {
		err := r.trySend("t", msg(strings.Repeat("x", 100<<10)))
		if errors.Is(err, ErrQuota) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if c := r.counts("t/Subscriptions/s"); n != 10 || c.Dead != 10 {
		t.Errorf("%d messages of 100 KiB were accepted, %d are dead letters, want 10 in 1 MiB", n, c.Dead)
	}
	if _, err := r.Purge(t.Context(), "t/Subscriptions/s/$DeadLetterQueue"); err != nil {
		t.Fatal(err)
	}
	if err := r.trySend("t", msg("x")); err != nil {
		t.Errorf("after a purge: %v, want nil", err)
	}
}

// Number 13: nor does a dead letter, which its reason may have made larger than a
// message may be.
func TestDeadLetterDoesNotGrowWithEachDelivery(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	large := func(name string) message.Pair {
		return message.Pair{Name: name, Value: codec.Binary(make([]byte, 30<<10))}
	}
	d := message.Draft{Application: []message.Pair{large("a"), large("b")}}
	r.send("q", d.Message())
	rec, k := r.receive("q", 1, ReceiverOptions{})
	r.settle(rec, <-k.ds, Outcome{Disposition: DeadLetter, Reason: strings.Repeat("r", 4096), Description: strings.Repeat("d", 4096)})
	dead, k := r.receive("q/$DeadLetterQueue", 10, ReceiverOptions{})
	errs := make(chan []error, 1)
	o := Outcome{Disposition: Abandon, Properties: []message.Change{{Name: "c", Value: codec.Binary(make([]byte, 30<<10))}}}
	dead.Settle([]queue.Token{(<-k.ds).Token}, o, func(es []error) { errs <- es })
	if es := <-errs; len(es) != 1 || !errors.Is(es[0], limits.ErrExceeded) {
		t.Errorf("30 KiB more: %v, want %v", es, limits.ErrExceeded)
	}
}

// Medium: trying rules ends with who asked.
func TestTryRulesEndsWithItsContext(t *testing.T) {
	r := start(t)
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "s"})
	ctx, cancel := context.WithCancel(t.Context())
	rules, err := r.MatchRules(ctx, "t", msg("x"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(slices.Collect(rules)); n != 1 {
		t.Errorf("%d rules were tried, want 1", n)
	}
	cancel()
	for m := range rules {
		t.Errorf("after it had ended, %+v", m)
	}
}

// A message that an earlier version took, with more elements without bytes than may come
// in now, is delivered, dead-lettered and redriven like any other.
func TestStoredMessagesBeyondTheLimitOfElementsStayReadable(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	// A value that is an array32 of 4,096 nulls.
	m, err := message.ParseStored([]byte{0, 0x53, 0x77, 0xf0, 0, 0, 0, 5, 0, 0, 0x10, 0, 0x40})
	if err != nil {
		t.Fatal(err)
	}
	r.send("q", m)
	r = r.restart()
	rec, k := r.receive("q", 1, ReceiverOptions{})
	d := <-k.ds
	if back, err := d.Message(); err != nil {
		t.Fatal(err)
	} else if !bytes.HasSuffix(back.Bytes(), m.Bytes()) {
		t.Errorf("it is read as % x", back.Bytes())
	}
	r.settle(rec, d, Outcome{Disposition: DeadLetter, Reason: "old"})
	if dead := r.deadOf("q"); len(dead) != 1 || !strings.Contains(dead[0], "old") {
		t.Errorf("the dead letters are %q", dead)
	}
	r = r.restart()
	if dead := r.deadOf("q"); len(dead) != 1 || !strings.Contains(dead[0], "old") {
		t.Errorf("after a restart the dead letters are %q", dead)
	}
}
