// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

func (r *rig) explain(addr string, seq queue.SeqNo) Explanation {
	r.t.Helper()
	x, err := r.Explain(r.t.Context(), addr, seq)
	if err != nil {
		r.t.Fatalf("explain message %d of %q: %v", seq, addr, err)
	}
	return x
}

func TestExplainAStarvingMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.ranked("orders", paidFirst)
		r.send("orders", msg("starving", "plan", "free"))
		time.Sleep(90 * time.Second)
		rec, k := r.receive("orders", 0, ReceiverOptions{})
		for i := range uint64(60) { // one a second is worked off, and one a second comes
			r.send("orders", msg("p", "plan", "paid"))
			rec.SetDeliveryLimit(i + 1)
			r.settle(rec, <-k.ds, Outcome{Disposition: Complete})
			time.Sleep(time.Second)
		}
		r.send("orders", msg("p", "plan", "paid"), msg("p", "plan", "paid"), msg("p", "plan", "paid"))
		x := r.explain("orders", 1)
		if x.Class != "free" || x.Level != 3 || x.Ahead != 3 || x.AheadBy[0].Classes[0] != "paid" {
			t.Errorf("got %+v", x)
		}
		if x.Start == nil || *x.Start < 2.5 || *x.Start > 3.5 {
			t.Errorf("should start in %v s, want about 3", x.Start)
		}
		for _, part := range []string{
			"Message 1 of orders is waiting, since ", " (2m30s).",
			`class "free" takes every message that no class before it takes; the class has level 3; not "paid", because`,
			"Ahead of it (strict): 3 of paid (level 8).",
			"It should start in about ", "3 ahead / ", " completed per second = ",
		} {
			if !strings.Contains(x.Text(), part) {
				t.Errorf("%q is missing in\n%s", part, x.Text())
			}
		}
	})
}

func TestExplainWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.ranked("orders", `{"discipline": "deadline", "classes": [
			{"name": "paid", "level": 8, "when": "plan = 'paid'", "objective": {"wait": "10s"}},
			{"name": "trial", "level": 5, "when": "plan = 'trial'", "objective": {"wait": "1m"}},
			{"name": "free", "level": 3, "objective": {"wait": "2m"}}]}`)
		says := func(seq queue.SeqNo, parts ...string) {
			t.Helper()
			x := r.explain("orders", seq)
			for _, part := range parts {
				if !strings.Contains(x.Text(), part) {
					t.Errorf("%q is missing in\n%s", part, x.Text())
				}
			}
		}
		r.send("orders", msg("1", "plan", "trial"))
		says(1, "It is due at ", ", in 1m0s.\n", "Nothing is ahead of it; it is next (deadline)")
		time.Sleep(90 * time.Second)
		r.send("orders", msg("2", "plan", "free"), msg("3", "plan", "paid"), msg("4", "plan", "trial"))
		says(1, "It was due at ", ", 30s ago.\nIt is late, so higher levels go first, and level 5 goes by age.\n", "Ahead of it (deadline): 1 of paid (level 8).")
		says(2, ", in 2m0s.\nMessages of level 5 are late: they and higher levels go first.\n")
		says(3, ", in 10s.\nNothing is ahead of it")
		says(4, ", in 1m0s.\nAn older message of level 5 is late, so higher levels go first, then that one.\n")
	})
}

func TestExplainWhatHoldsAMessage(t *testing.T) {
	r := start(t)
	r.ranked("q", `{"fairKey": "tenant", "keyDefaults": {"concurrency": 1}}`)
	r.queue(entity.Queue{Name: "s", RequiresSession: true})
	wantHeld := func(addr string, seq queue.SeqNo, held string) {
		t.Helper()
		x := r.explain(addr, seq)
		if !strings.Contains(x.BlockedBy, held) || held == "" && x.BlockedBy != "" {
			t.Errorf("message %d of %s: held by %q, want %q", seq, addr, x.BlockedBy, held)
		}
		if held != "" && !strings.Contains(x.Text(), "Blocked: "+x.BlockedBy) {
			t.Errorf("%q is missing in\n%s", x.BlockedBy, x.Text())
		}
	}
	r.send("q", msg("a", "tenant", "x"), msg("b", "tenant", "x"))
	wantHeld("q", 1, "no consumer is attached")
	rec, k := r.receive("q", 1, ReceiverOptions{})
	<-k.ds
	wantHeld("q", 1, "a consumer has it locked")
	wantHeld("q", 2, `its fair key "x" has reached its concurrency limit`)
	r.send("q", msg("c", "tenant", "y"))
	wantHeld("q", 3, "")
	if err := r.Pause(t.Context(), "q", Pause{Receiving: true}); err != nil {
		t.Fatal(err)
	}
	wantHeld("q", 3, "receiving is paused")
	rec.Close()
	if _, err := r.UpdateQueue(t.Context(), entity.Queue{Name: "q", Status: entity.ReceiveDisabled}); err != nil {
		t.Fatal(err)
	}
	wantHeld("q", 3, "the entity is disabled (status ReceiveDisabled)")
	if _, err := r.Explain(t.Context(), "q", 99); !errors.Is(err, ErrMessageNotFound) {
		t.Errorf("a message that is not there: %v, want %v", err, ErrMessageNotFound)
	}
}

func TestExplainALiftedSession(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "s", RequiresSession: true})
	r.send("s", inSession("a", 2), inSession("b", 5), inSession("a", 8))
	x := r.explain("s", 1)
	if want := (Boost{By: 3, Level: 8, Rank: 8}); x.Boost == nil || *x.Boost != want || x.Ahead != 0 {
		t.Errorf("lifted %+v, %d ahead, want %+v and nothing", x.Boost, x.Ahead, want)
	}
	if want := "Its session is ranked at level 8 because of message 3.\n"; !strings.Contains(x.Text(), want) {
		t.Errorf("%q is missing in\n%s", want, x.Text())
	}
	for seq, ahead := range map[queue.SeqNo]queue.Level{2: 8, 3: 2} {
		if x := r.explain("s", seq); x.Boost != nil || x.Ahead != 1 || x.AheadBy[0].Level != ahead {
			t.Errorf("message %d: lifted %+v, ahead %+v, want not lifted behind one of level %d", seq, x.Boost, x.AheadBy, ahead)
		}
	}
	_, k := r.receive("s", 3, ReceiverOptions{NextSession: true})
	for _, want := range []queue.SeqNo{1, 3} {
		if d := <-k.ds; d.Seq != want {
			t.Errorf("got message %d, want %d", d.Seq, want)
		}
	}
}

// inSession returns a message of a session with a level of its own.
func inSession(id string, level int32) *message.Message {
	d := message.Draft{Body: []byte("x"), SessionID: id, Application: []message.Pair{{Name: "Priority", Value: codec.Int(level)}}}
	return d.Message()
}

func TestExplainAScheduledMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.queue(entity.Queue{Name: "q"})
		d := message.Draft{Body: []byte("later"), Annotations: []message.Pair{{
			Name: message.AnnotationScheduledEnqueueTime, Value: codec.Timestamp(time.Now().Add(time.Hour))}}}
		seqs, err := r.Schedule(t.Context(), "q", []*message.Message{d.Message()}, SenderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		x := r.explain("q", seqs[0])
		if x.State != "scheduled" || x.Start == nil || *x.Start != 3600 || x.BlockedUntil == nil {
			t.Errorf("got %+v", x)
		}
	})
}
