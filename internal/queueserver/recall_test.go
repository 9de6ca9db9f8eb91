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
