// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// recallTaker is a taker whose deliveries are recalled.
type recallTaker struct {
	taker
	recalled []queue.Token
}

func (k *recallTaker) Recall(tokens []queue.Token) { k.recalled = append(k.recalled, tokens...) }

// attachRecall attaches a consumer that gets one message.
func (r *rig) attachRecall(id ID) *recallTaker {
	r.t.Helper()
	k := &recallTaker{taker: taker{r: r}}
	a := Attachment{Consumer: r.s.AddSink(k), ID: id, Recall: true}
	if err := r.s.Attach(a, func(error) { k.c = r.s.consumers[a.Consumer] }); err != nil {
		r.t.Fatal(err)
	}
	r.step()
	k.c.SetDeliveryLimit(1)
	r.settle()
	if len(k.got) != 1 {
		r.t.Fatalf("%d messages delivered, want 1", len(k.got))
	}
	return k
}

// A consumer that does not do what it must with a recall delays the next one only until
// the lock of the message would have ended.
func TestRecallIsNotWaitedForForEver(t *testing.T) {
	for name, misbehave := range map[string]func(*recallTaker){
		"released without credit": func(k *recallTaker) { k.settle(Release, k.got[0]) },
		"renewed and not answered": func(k *recallTaker) {
			renew := Renew{Queue: QueueID{Entity: k.c.queue.entity.ID}, Tokens: []queue.Token{k.got[0].Token}}
			if err := Post(k.r.s, renew, nil); err != nil {
				k.r.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			id := r.define("q", minute)
			r.send(id, 1, "low")
			r.send(id, 1, "low")
			bad, other := r.attachRecall(id), r.attachRecall(id)
			r.send(id, 9, "high")
			r.settle()
			if !slices.Equal(bad.recalled, []queue.Token{bad.got[0].Token}) {
				t.Fatalf("recalled %v, want its delivery", bad.recalled)
			}
			r.now = r.now.Add(30 * time.Second)
			misbehave(bad)
			renew := Renew{Queue: QueueID{Entity: id}, Tokens: []queue.Token{other.got[0].Token}}
			if err := Post(r.s, renew, nil); err != nil {
				t.Fatal(err)
			}
			r.settle()
			if len(other.recalled) > 0 {
				t.Error("another was recalled at once")
			}
			r.now = r.now.Add(31 * time.Second)
			r.send(id, 0, "lowest") // something happens in the queue
			r.settle()
			if !slices.Equal(other.recalled, []queue.Token{other.got[0].Token}) {
				t.Errorf("recalled %v, want the delivery of the other consumer", other.recalled)
			}
		})
	}
}

// A consumer with credit gets what another has fetched and not started, at the same level too.
func TestFreeConsumerGetsWhatOthersHaveNotStarted(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("q", minute)
	for range 5 {
		r.send(id, 4, "m")
	}
	hoard := r.attachRecall(id)
	hoard.c.SetDeliveryLimit(10)
	r.settle()
	if len(hoard.got) != 5 {
		t.Fatalf("%d messages delivered, want all", len(hoard.got))
	}
	token := func(n int) queue.Token { return hoard.got[n].Token }
	wantRecalled := func(when string, want ...int) {
		t.Helper()
		var tokens []queue.Token
		for _, n := range want {
			tokens = append(tokens, token(n))
		}
		if !slices.Equal(hoard.recalled, tokens) {
			t.Fatalf("%s: recalled %v, want %v", when, hoard.recalled, tokens)
		}
	}

	free := r.attach(id, Main, queue.TakeOptions{})
	r.settle()
	wantRecalled("without credit")
	free.c.SetDeliveryLimit(2)
	r.settle()
	r.settle()
	wantRecalled("with credit", 4) // one at a time

	if err := r.s.DeclineRecall(hoard.c.id, []queue.Token{token(4)}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	wantRecalled("after the last was started", 4, 3)

	// What is released goes to the free consumer, although the other has credit and may have the
	// next turn.
	hoard.settle(Release, hoard.got[3])
	r.settle()
	if len(free.got) != 1 || free.got[0].Seq != hoard.got[3].Seq || len(hoard.got) != 5 {
		t.Fatalf("the free consumer has %d messages, the other %d", len(free.got), len(hoard.got))
	}
	wantRecalled("with credit for one more", 4, 3, 2)
	hoard.settle(Release, hoard.got[2])
	r.settle()
	wantRecalled("without more credit", 4, 3, 2)
	if len(free.got) != 2 {
		t.Errorf("the free consumer has %d messages, want 2", len(free.got))
	}
}

// Consumers that fetch ahead do not take messages from each other, nor do those that take only
// other levels.
func TestNothingIsRecalledForConsumersThatCannotStartIt(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("q", minute)
	r.send(id, 4, "m")
	hoard := r.attachRecall(id)
	other := &recallTaker{taker: taker{r: r}}
	for _, a := range []Attachment{
		{Consumer: r.s.AddSink(other), ID: id, Recall: true},
		{Consumer: r.s.AddSink(&taker{r: r}), ID: id, Take: queue.TakeOptions{MinLevel: 5}},
		{Consumer: r.s.AddSink(&taker{r: r}), ID: id, Internal: true},
	} {
		if err := r.s.Attach(a, func(error) {}); err != nil {
			t.Fatal(err)
		}
		r.step()
		if err := r.s.SetDeliveryLimit(a.Consumer, 10); err != nil {
			t.Fatal(err)
		}
		r.settle()
	}
	if len(hoard.recalled) > 0 {
		t.Errorf("recalled %v", hoard.recalled)
	}
}
