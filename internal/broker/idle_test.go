// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/broker/jobs/idle"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/queue"
)

// shortIdle is the shortest time after which what is idle may be deleted.
const shortIdle = 5 * time.Minute

func (r *rig) exists(addr string) bool {
	r.t.Helper()
	_, err := r.Resolve(addr)
	if err != nil && !errors.Is(err, ErrNotFound) {
		r.t.Fatalf("resolve %q: %v", addr, err)
	}
	return err == nil
}

// wantIdle checks that an entity exists for its auto-delete time, counted from
// now, and gone soon after. It sleeps as its bubble does.
func (r *rig) wantIdle(addr string, sleep func(time.Duration)) {
	r.t.Helper()
	sleep(shortIdle - 2*idle.Every)
	if !r.exists(addr) {
		r.t.Fatalf("%s was deleted before its time", addr)
	}
	sleep(4 * idle.Every)
	if r.exists(addr) {
		r.t.Fatalf("%s is idle, and was not deleted", addr)
	}
}

// B4: a topic is in use while one of its subscriptions is.
func TestTopicIsInUseWithItsSubscriptions(t *testing.T) {
	uses := map[string]func(*rig, func(time.Duration)){ // of the subscription, for more than an hour
		"an open receiver": func(r *rig, sleep func(time.Duration)) {
			rec, _ := r.receive("t/Subscriptions/s", 1, ReceiverOptions{})
			sleep(time.Hour)
			rec.Close()
		},
		"an open receiver of dead letters": func(r *rig, sleep func(time.Duration)) {
			rec, _ := r.receive("t/Subscriptions/s/$DeadLetterQueue", 1, ReceiverOptions{})
			sleep(time.Hour)
			rec.Close()
		},
		"receives": func(r *rig, sleep func(time.Duration)) {
			for range 20 {
				sleep(shortIdle - time.Minute)
				r.take("t/Subscriptions/s")
			}
		},
		"peeks": func(r *rig, sleep func(time.Duration)) {
			for range 20 {
				sleep(shortIdle - time.Minute)
				if _, err := r.Peek(r.t.Context(), "t/Subscriptions/s", 0, 1, nil); err != nil {
					r.t.Fatal(err)
				}
			}
		},
		"new rules": func(r *rig, sleep func(time.Duration)) {
			for i := range 20 {
				sleep(shortIdle - time.Minute)
				if _, err := r.CreateRule(r.t.Context(), "t", "s", sql(string(rune('a'+i)), "x = '1'")); err != nil {
					r.t.Fatal(err)
				}
			}
		},
		"renewals": func(r *rig, sleep func(time.Duration)) {
			r.send("t", msg("m"))
			rec, k := r.receive("t/Subscriptions/s", 1, ReceiverOptions{})
			d := <-k.ds
			rec.Close()
			for range 120 {
				sleep(30 * time.Second)
				if _, err := r.Renew(r.t.Context(), "t/Subscriptions/s", []queue.Token{d.Token}); err != nil {
					r.t.Fatal(err)
				}
			}
		},
	}
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t)
				r.topic(entity.Topic{Name: "t", AutoDeleteOnIdle: entity.Duration(shortIdle)}, entity.Subscription{Name: "s"})
				use(r, time.Sleep)
				if !r.exists("t/Subscriptions/s") {
					t.Fatal("the topic was deleted while its subscription was in use")
				}
				r.wantIdle("t", time.Sleep)
			})
		})
	}
}

// B4: a topic whose subscription forwards always has a reader.
func TestTopicThatFeedsAForwardIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.queue(entity.Queue{Name: "q"})
		r.topic(entity.Topic{Name: "t", AutoDeleteOnIdle: entity.Duration(shortIdle)}, entity.Subscription{Name: "s", ForwardTo: "q"})
		time.Sleep(time.Hour)
		if !r.exists("t") {
			t.Fatal("the topic was deleted")
		}
	})
}

// B4: what is scheduled was accepted, and is use until its time has come.
func TestScheduledMessagesAreUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		idle := entity.Duration(shortIdle)
		r.queue(entity.Queue{Name: "q", AutoDeleteOnIdle: idle})
		r.topic(entity.Topic{Name: "t", AutoDeleteOnIdle: idle}, entity.Subscription{Name: "s"})
		for _, addr := range []string{"q", "t"} {
			r.send(addr, scheduled("m", time.Now().Add(time.Hour)))
		}
		time.Sleep(time.Hour + time.Minute)
		if !r.exists("q") || !r.exists("t") {
			t.Fatal("an entity with scheduled messages was deleted")
		}
		if c := r.counts("q"); c.Active != 1 {
			t.Errorf("the queue has %+v, want the message", c)
		}
		if c := r.counts("t/Subscriptions/s"); c.Active != 1 {
			t.Errorf("the subscription has %+v, want the message", c)
		}
		time.Sleep(shortIdle)
		if r.exists("q") || r.exists("t") {
			t.Error("idle entities were not deleted")
		}
	})
}

// B4: what waits in a topic that is paused was accepted, too.
func TestPausedTopicWithMessagesIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.topic(entity.Topic{Name: "t", AutoDeleteOnIdle: entity.Duration(shortIdle)}, entity.Subscription{Name: "s"})
		r.send("t", scheduled("m", time.Now().Add(time.Minute)))
		r.pause("t", Pause{Sending: true})
		time.Sleep(time.Hour)
		r.pause("t", Pause{})
		synctest.Wait()
		wantBodies(t, "the subscription", r.take("t/Subscriptions/s"), "m")
	})
}

// B4: a queue is in use while it has a receiver, and a while after.
func TestReceiverOfAQueueIsUseToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.queue(entity.Queue{Name: "q", AutoDeleteOnIdle: entity.Duration(shortIdle)})
		rec, _ := r.receive("q", 1, ReceiverOptions{})
		time.Sleep(time.Hour)
		rec.Close()
		r.wantIdle("q", time.Sleep)
	})
}

// B4: a use that comes between the look and the deletion calls the deletion off.
func TestUseAtTheLastMomentKeepsAnEntity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		life := entity.Duration(shortIdle)
		r.queue(entity.Queue{Name: "q", AutoDeleteOnIdle: life})
		r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "s", AutoDeleteOnIdle: life})
		del := idle.New(r.Catalog, r.clock, r.log)
		r.send("q", msg("m"))
		r.send("t", msg("m"))
		r.receive("t/Subscriptions/s", 0, ReceiverOptions{})
		for _, addr := range []string{"q", "t/Subscriptions/s"} {
			del.Delete(t.Context(), r.Entity(addr), time.Time{})
			if !r.exists(addr) {
				t.Errorf("%s was deleted", addr)
			}
		}
		r.send("t", msg("n"))
		if c := r.counts("t/Subscriptions/s"); c.Active != 2 {
			t.Errorf("the subscription has %+v, want both messages", c)
		}
	})
}
