// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/queue"
)

// lender is a sink that is asked for messages back.
type lender struct {
	*sink
	asked chan []queue.Token
}

func (l *lender) Recall(tokens []queue.Token) { l.asked <- tokens }

func (r *rig) lender(addr string, n uint64, o ReceiverOptions) (*Receiver, *lender) {
	r.t.Helper()
	l := &lender{newSink(), make(chan []queue.Token, 100)}
	o.Sink, o.Recall = l, true
	rec, err := r.OpenReceiver(r.t.Context(), addr, o)
	if err != nil {
		r.t.Fatal(err)
	}
	rec.SetDeliveryLimit(n)
	return rec, l
}

func (r *rig) giveBack(rec *Receiver, tokens []queue.Token) {
	r.t.Helper()
	done := make(chan error, 1)
	rec.Settle(tokens, Outcome{Disposition: Release}, func(errs []error) { done <- errors.Join(errs...) })
	if err := <-done; err != nil {
		r.t.Fatalf("release: %v", err)
	}
}

func TestRecallFreesCreditForAHigherMessage(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	for _, name := range []string{"l0", "l1", "l2"} {
		r.send("q", msg(name, "Priority", "low"))
	}
	r.send("q", msg("n0"))
	rec, l := r.lender("q", 4, ReceiverOptions{})
	defer rec.Close()
	var ds []Delivery
	for range 4 {
		ds = append(ds, <-l.ds) // n0 l0 l1 l2
	}
	r.send("q", msg("h0", "Priority", "high"))
	asked := <-l.asked
	if len(asked) != 1 || asked[0] != ds[3].Token {
		t.Fatalf("asked for %v, want the low one delivered last, %v", asked, ds[3].Token)
	}
	// Whatever happens meanwhile, it is asked for once.
	r.send("q", msg("l3", "Priority", "low"))
	r.giveBack(rec, asked)
	rec.SetDeliveryLimit(5)
	if got := body(t, <-l.ds); got != "h0" {
		t.Fatalf("next is %q, want h0", got)
	}
	if len(l.asked) != 0 {
		t.Errorf("asked again: %v", <-l.asked)
	}
	// A second one is worth a second message, and the first token is not asked
	// for again.
	r.send("q", msg("h1", "Priority", "high"))
	if asked := <-l.asked; asked[0] != ds[2].Token {
		t.Errorf("asked for %v, want %v", asked, ds[2].Token)
	}
	// What was given back stands where it stood, and nothing counts against it.
	other, k := r.receive("q", 1, ReceiverOptions{MaxLevel: 2})
	defer other.Close()
	if d := <-k.ds; body(t, d) != "l2" || d.Failures != 0 {
		t.Errorf("%q with %d failures is next among the low, want l2 with none", body(t, d), d.Failures)
	}
}

func TestNothingIsRecalledWithoutNeed(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.send("q", msg("n0"), msg("n1"))
	rec, l := r.lender("q", 2, ReceiverOptions{})
	defer rec.Close()
	<-l.ds
	<-l.ds
	r.send("q", msg("n2"), msg("low", "Priority", "low")) // no better than what it has
	foreign, k := r.receive("q", 1, ReceiverOptions{MinLevel: 7})
	defer foreign.Close()
	r.send("q", msg("high", "Priority", "high")) // has a taker
	<-k.ds
	capped, m := r.lender("q", 1, ReceiverOptions{MaxLevel: 4})
	defer capped.Close()
	<-m.ds
	if len(l.asked)+len(m.asked) != 0 {
		t.Error("something was recalled")
	}
}

func TestAnotherIsRecalledInPlaceOfOneThatWasStarted(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.send("q", msg("n0"), msg("l0", "Priority", "low"), msg("l1", "Priority", "low"), msg("l2", "Priority", "low"))
	rec, l := r.lender("q", 4, ReceiverOptions{})
	defer rec.Close()
	var ds []Delivery
	for range 4 {
		ds = append(ds, <-l.ds) // n0 l0 l1 l2
	}
	wantAsked := func(which Delivery) []queue.Token {
		t.Helper()
		asked := <-l.asked
		if len(asked) != 1 || asked[0] != which.Token {
			t.Fatalf("asked for %v, want %v", asked, which.Token)
		}
		return asked
	}
	r.send("q", msg("h0", "Priority", "high"))
	rec.DeclineRecall(wantAsked(ds[3])) // has been started
	// Settled otherwise than by giving it back, it makes no space either.
	r.settle(rec, Delivery{Delivery: queue.Delivery{Token: wantAsked(ds[2])[0]}}, Outcome{Disposition: Complete})
	rec.DeclineRecall([]queue.Token{ds[0].Token}) // nobody asked for that
	rec.DeclineRecall(wantAsked(ds[1]))
	r.giveBack(rec, wantAsked(ds[0])) // the next level, when the lowest is used up
	r.send("q", msg("n1"))
	rec.SetDeliveryLimit(5)
	if got := body(t, <-l.ds); got != "h0" {
		t.Errorf("next is %q, want h0", got)
	}
	// Everything that is left has been started, and nothing is asked for twice.
	r.send("q", msg("h1", "Priority", "high"))
	if len(l.asked) != 0 {
		t.Errorf("asked for %v", <-l.asked)
	}
}

func TestAnotherIsRecalledWhenItsConsumerLeaves(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.send("q", msg("l0", "Priority", "low"))
	one, l := r.lender("q", 1, ReceiverOptions{})
	defer one.Close()
	d0 := <-l.ds
	r.send("q", msg("l1", "Priority", "low"))
	other, m := r.lender("q", 1, ReceiverOptions{})
	defer other.Close()
	d1 := <-m.ds
	r.send("q", msg("h0", "Priority", "high"))
	// Which of the two is asked first is not promised.
	var left <-chan []queue.Token
	var want queue.Token
	select {
	case <-l.asked:
		one.Close()
		left, want = m.asked, d1.Token
	case <-m.asked:
		other.Close()
		left, want = l.asked, d0.Token
	}
	r.send("q", msg("l2", "Priority", "low")) // a reason to look again
	if asked := <-left; asked[0] != want {
		t.Errorf("asked for %v, want %v of who is still there", asked, want)
	}
}

// A message is recalled by its present priority, not by the one it had when
// it was delivered.
func TestRecallGoesByTheNewPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.ranked("q", `{"classes": [{"name": "a", "level": 2, "when": "kind = 'a'"}]}`)
		r.send("q", msg("older")) // level 4
		other, k := r.receive("q", 1, ReceiverOptions{})
		defer other.Close()
		older := <-k.ds
		r.send("q", msg("a", "kind", "a"))
		rec, l := r.lender("q", 1, ReceiverOptions{})
		defer rec.Close()
		<-l.ds
		if _, err := r.SetPolicy(t.Context(), "q", []byte(`{"classes": [{"name": "a", "level": 4, "when": "kind = 'a'"}]}`)); err != nil {
			t.Fatal(err)
		}
		r.settle(other, older, Outcome{Disposition: Release})
		synctest.Wait()
		if len(l.asked) != 0 {
			t.Errorf("asked for %v, which is at the same level by now", <-l.asked)
		}
	})
}

func TestRecallSeesThatAMessageIsWorthLessNow(t *testing.T) {
	r := start(t)
	r.ranked("q", `{"classes": [{"name": "all", "level": 8, "when": "kind = 'a'"}]}`)
	r.send("q", msg("a", "kind", "a"))
	rec, l := r.lender("q", 1, ReceiverOptions{})
	defer rec.Close()
	a := <-l.ds
	r.send("q", msg("n")) // level 4, and nobody below it
	if _, err := r.SetPolicy(t.Context(), "q", []byte(`{"classes": [{"name": "all", "level": 1, "when": "kind = 'a'"}]}`)); err != nil {
		t.Fatal(err)
	}
	if asked := <-l.asked; len(asked) != 1 || asked[0] != a.Token {
		t.Errorf("asked for %v, want %v", asked, a.Token)
	}
}
