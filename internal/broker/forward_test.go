// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"encoding/json"
	"errors"
	"maps"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// loop defines a topic whose two subscriptions forward to a queue that forwards
// to the topic, without the check that refuses it: stores of earlier versions may
// have such loops.
func (r *rig) loop(top entity.Topic) *rig {
	r.t.Helper()
	r.topic(top, entity.Subscription{Name: "one"}, entity.Subscription{Name: "two"})
	r.queue(entity.Queue{Name: "q"})
	for path, to := range map[string]string{"q": "t", "t/Subscriptions/one": "q", "t/Subscriptions/two": "q"} {
		n := r.Entity(path)
		def := *n.Definition()
		if def.Kind == KindQueue {
			q := *def.Queue
			q.ForwardTo, def.Queue = to, &q
		} else {
			s := *def.Subscription
			s.ForwardTo, def.Subscription = to, &s
		}
		r.store(n, def)
	}
	return r.restart()
}

// store writes a definition that nobody has checked.
func (r *rig) store(n *catalog.Entity, def catalog.Definition) {
	r.t.Helper()
	meta, err := json.Marshal(def)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := queueserver.Finish(n.Shard, queueserver.Configure{ID: n.ID, Meta: meta}); err != nil {
		r.t.Fatal(err)
	}
}

// B1: a loop through a topic has no end unless hops are carried through it.
func TestHopsAreCarriedThroughTopics(t *testing.T) {
	for name, top := range map[string]entity.Topic{
		"published at once": {Name: "t"},
		"held by the topic": {Name: "t", RequiresDuplicateDetection: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			r = r.loop(top)
			r.send("t", msg("m"))
			// Four hops: subscription to queue, queue to topic, and again. So the
			// topic publishes the message, its 2 copies and their 4: what lies in
			// the subscriptions then stays there.
			const want = 8
			for {
				waiting, dead := int64(0), int64(0)
				for _, addr := range []string{"q", "t", "t/Subscriptions/one", "t/Subscriptions/two"} {
					c := r.counts(addr)
					waiting += c.Active + c.Scheduled
					dead += c.TransferDead
				}
				if waiting+dead > 1000 {
					t.Fatalf("one message became %d, and there is no end", waiting+dead)
				}
				if waiting == 0 && dead == want {
					break
				}
				runtime.Gosched()
			}
			_, k := r.receive("t/Subscriptions/one/$Transfer/$DeadLetterQueue", 1, ReceiverOptions{})
			d := <-k.ds
			dead, err := d.Message()
			if err != nil {
				t.Fatal(err)
			}
			v, _ := dead.Property(message.PropertyDeadLetterReason)
			if got, _ := v.Str(); got != "MaxTransferHopCountExceeded" {
				t.Errorf("reason %q, want %q", got, "MaxTransferHopCountExceeded")
			}
		})
	}
}

// B1: dead letters are forwarded too, and no check refuses a loop that needs them.
// Its hops are counted, and a message with too many becomes a dead letter, and is not retried without limit.
func TestHopsAreCarriedThroughDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.topic(entity.Topic{Name: "t"})
		r.queue(entity.Queue{
			Name: "q", DefaultMessageTimeToLive: entity.Duration(time.Second),
			DeadLetteringOnMessageExpiration: true, ForwardDeadLetteredMessagesTo: "t",
		})
		for _, name := range []string{"one", "two"} {
			if _, err := r.CreateSubscription(t.Context(), "t", entity.Subscription{Name: name, ForwardTo: "q"}); err != nil {
				t.Fatal(err)
			}
		}
		r.send("t", msg("m"))
		time.Sleep(9 * time.Second)
		synctest.Wait()
		dead := int64(0)
		for _, addr := range []string{"t/Subscriptions/one", "t/Subscriptions/two"} {
			c := r.counts(addr)
			dead += c.TransferDead
			if c.Active != 0 || c.Dead != 0 {
				t.Errorf("%s: %+v, want nothing but transfer dead letters", addr, c)
			}
		}
		if q := r.counts("q"); dead != 8 || q.Total() != 0 {
			t.Errorf("%d transfer dead letters and %+v in the queue, want 8 and none", dead, q)
		}
	})
}

// B1: a dead letter that has been forwarded too often is put aside; before it was
// tried each second without limit and kept the others from being forwarded.
func TestDeadLetterWithTooManyHopsIsPutAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.queue(entity.Queue{Name: "graves"})
		names := []string{"a", "b", "c", "d", "e"}
		for i, name := range slices.Backward(names) {
			q := entity.Queue{Name: name, ForwardDeadLetteredMessagesTo: "graves"}
			if i+1 < len(names) {
				q.ForwardTo = names[i+1]
			}
			r.queue(q)
		}
		r.send("a", msg("m"))
		synctest.Wait()
		r.deadLetter("e", 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		if c := r.counts("e"); c.Dead != 0 || c.TransferDead != 1 {
			t.Errorf("e: %+v, want one transfer dead letter", c)
		}
	})
}

// B1: what the check must see: loops through topics, and of subscriptions.
func TestForwardsThatComeBackThroughTopicsAreRefused(t *testing.T) {
	r := start(t)
	ctx := t.Context()
	r.queue(entity.Queue{Name: "q"})
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "plain"}, entity.Subscription{Name: "on", ForwardTo: "q"})
	r.topic(entity.Topic{Name: "u"}, entity.Subscription{Name: "on", ForwardTo: "t"})
	if err := r.DeleteQueue(ctx, "q"); err != nil {
		t.Fatal(err)
	}
	_, back := r.CreateQueue(ctx, entity.Queue{Name: "q", ForwardTo: "t"})
	_, far := r.CreateQueue(ctx, entity.Queue{Name: "q", ForwardTo: "sb://host/U"})
	_, own := r.CreateSubscription(ctx, "t", entity.Subscription{Name: "own", ForwardTo: "T"})
	_, round := r.CreateSubscription(ctx, "t", entity.Subscription{Name: "round", ForwardTo: "u"})
	r.queue(entity.Queue{Name: "q"})
	_, later := r.UpdateQueue(ctx, entity.Queue{Name: "q", ForwardTo: "t"})
	_, turned := r.UpdateSubscription(ctx, "t", entity.Subscription{Name: "plain", ForwardTo: "u"})
	for what, err := range map[string]error{
		"a queue whose topic forwards to it":        back,
		"the same through two topics":               far,
		"a subscription to its own topic":           own,
		"a subscription to what leads to its topic": round,
		"a queue that is changed":                   later,
		"a subscription that is changed":            turned,
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want %v", what, err, ErrInvalid)
		}
	}
	// Two ways to one place are no loop.
	if _, err := r.CreateSubscription(ctx, "u", entity.Subscription{Name: "too", ForwardTo: "q"}); err != nil {
		t.Errorf("a second way to a queue: %v", err)
	}
}

// B1: a loop that is there already, made by an earlier version, can be changed in
// all but its forwards, and the check of others gets round it.
func TestCheckOfForwardsEndsInAnOldLoop(t *testing.T) {
	r := start(t)
	r = r.loop(entity.Topic{Name: "t"})
	if _, err := r.CreateQueue(t.Context(), entity.Queue{Name: "before", ForwardTo: "t"}); err != nil {
		t.Errorf("a queue that leads into a loop: %v", err)
	}
	if _, err := r.UpdateQueue(t.Context(), entity.Queue{Name: "q", ForwardTo: "t", MaxDeliveryCount: 3}); err != nil {
		t.Errorf("another property of a queue in a loop: %v", err)
	}
}

// B1: a topic looks for duplicates in what is forwarded to it, too, whether it
// lies in the shard of the queue or not.
func TestForwardedDuplicatesAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.topic(entity.Topic{Name: "t", RequiresDuplicateDetection: true}, entity.Subscription{Name: "s"})
		for _, from := range []string{"a", "b", "c", "d"} { // names of either shard
			r.queue(entity.Queue{Name: from, ForwardTo: "t"})
			for range 2 {
				d := message.Draft{Body: []byte(from), MessageID: codec.String(from)}
				r.send(from, d.Message())
			}
		}
		synctest.Wait()
		if c := r.counts("t/Subscriptions/s"); c.Active != 4 {
			t.Errorf("%d messages, want one of each queue", c.Active)
		}
	})
}

// A forwarded message has the number that it was given first, through queues, topics
// and topics that hold it; what is published has the number in its topic.
func TestForwardedMessagesKeepTheirFirstNumber(t *testing.T) {
	for what, topic := range map[string]entity.Topic{
		"at once": {Name: "t"}, "held": {Name: "t", RequiresDuplicateDetection: true},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t)
				r.queue(entity.Queue{Name: "last"})
				r.topic(topic, entity.Subscription{Name: "s"}, entity.Subscription{Name: "on", ForwardTo: "last"})
				r.queue(entity.Queue{Name: "first", ForwardTo: "t"})
				r.queue(entity.Queue{Name: "before", ForwardTo: "first"})
				r.send("t", msg("x"), msg("y")) // 1 and 2 in the topic
				r.send("before", msg("a"), msg("b"), msg("c"))
				synctest.Wait()
				want := map[string]queue.SeqNo{"x": 1, "y": 2, "a": 1, "b": 2, "c": 3}
				for _, addr := range []string{"t/Subscriptions/s", "last"} {
					got := map[string]queue.SeqNo{}
					ds, err := r.Peek(t.Context(), addr, 0, 10, nil)
					if err != nil {
						t.Fatal(err)
					}
					for _, d := range ds {
						got[body(t, d)] = d.Origin
					}
					if !maps.Equal(got, want) {
						t.Errorf("%s has %v, want %v", addr, got, want)
					}
				}
			})
		})
	}
}

// What a queue forwards to may be gone when the queue is changed, also if it is named in
// another way, as clients do who give back the URL that they were shown.
func TestForwardToWhatIsGoneStays(t *testing.T) {
	r := start(t)
	ctx := t.Context()
	r.queue(entity.Queue{Name: "b"})
	r.queue(entity.Queue{Name: "a", ForwardTo: "b", ForwardDeadLetteredMessagesTo: "b"})
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "s", ForwardTo: "b", ForwardDeadLetteredMessagesTo: "b"})
	if err := r.DeleteQueue(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"b", "B", "sb://host/b"} {
		if _, err := r.UpdateQueue(ctx, entity.Queue{Name: "a", ForwardTo: to, ForwardDeadLetteredMessagesTo: to, MaxDeliveryCount: 3}); err != nil {
			t.Errorf("a queue that forwards to %s: %v", to, err)
		}
		if _, err := r.UpdateSubscription(ctx, "t", entity.Subscription{Name: "s", ForwardTo: to, ForwardDeadLetteredMessagesTo: to}); err != nil {
			t.Errorf("a subscription that forwards to %s: %v", to, err)
		}
	}
	if _, err := r.UpdateQueue(ctx, entity.Queue{Name: "a", ForwardTo: "sb://host/c"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("to what never was: %v, want %v", err, ErrInvalid)
	}
}
