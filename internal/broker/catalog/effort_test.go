// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/turns"
)

// dearSQL takes long for a message of dear.
const dearSQL = "p LIKE '%_a_a_a_a_b_%'"

// dear makes messages that dearSQL takes long for.
func dear(n int) (batch []*message.Message) {
	for range n {
		batch = append(batch, withProperty("p", strings.Repeat("a", 30_000)))
	}
	return batch
}

// dearQueue creates a queue whose policy takes long for a message of dear.
func (c testCatalog) dearQueue(t testing.TB) *Entity {
	t.Helper()
	policy := fmt.Appendf(nil, `{"classes":[{"name":"a","level":9,"when":%q}]}`, dearSQL)
	if _, err := c.CreateQueue(t.Context(), entity.Queue{Name: "dear", Policy: policy}); err != nil {
		t.Fatal(err)
	}
	return c.Entity("dear")
}

// What a batch takes is known while it is evaluated: from then on it needs a turn.
func TestExpensiveBatchWaitsForATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		c.evaluating = turns.New(1, 1)
		n := c.dearQueue(t)
		leave := c.evaluating.Wait("somebody")
		sent := make(chan error, 1)
		go c.Send(n, dear(2), SendOptions{Waits: true}, func(_ []queue.SeqNo, err error) { sent <- err })
		synctest.Wait()
		if len(sent) > 0 || !n.Expensive() {
			t.Errorf("the batch did not wait behind its first message (expensive: %v)", n.Expensive())
		}
		leave()
		if err := <-sent; err != nil {
			t.Error(err)
		}
		c.evaluating.Wait("somebody")() // it has given its turn back
	})
}

// A large batch takes turns with those of other owners, whatever is done with it, a small one
// does not.
func TestLargeBatchesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		c.evaluating = turns.New(1, 1)
		leave := c.evaluating.Wait("somebody")
		c.TurnFor("q", largeBatch).End()
		taken := make(chan *Turn, 1)
		go func() { taken <- c.TurnFor("q", largeBatch+1) }()
		synctest.Wait()
		if len(taken) > 0 {
			t.Fatal("a large batch did not wait")
		}
		leave()
		(<-taken).End()
		c.evaluating.Wait("somebody")()
	})
}

// A batch that takes long gives its turn to others in between.
func TestTurnsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		c.evaluating = turns.New(1, 1)
		n := c.dearQueue(t)
		turn := c.TurnFor("q", largeBatch+1)
		others := make(chan func(), 1)
		go func() { others <- c.evaluating.Wait("other") }()
		e := evaluation{c: c.Catalog, n: n, waits: true, turn: turn}
		synctest.Wait()
		if e.next(0); len(others) > 0 {
			t.Error("a turn was given away before its time")
		}
		time.Sleep(turnTime)
		next := make(chan bool)
		go func() { e.next(0); close(next) }()
		(<-others)()
		<-next
		turn.End()
	})
}

// The conditions of a queue may take as long for a batch as the rules of a topic.
func TestConditionsOfABatchAreBounded(t *testing.T) {
	c := start(t)
	c.dearQueue(t)
	for _, size := range []int{1, 2} {
		p := c.newSend(dear(size), nil)
		p.n, p.out = c.Entity("dear"), fanOut{source: size, steps: limits.BatchSteps}
		err := p.choose(p.n.Definition(), c.clock.Now())
		if refused := errors.Is(err, ErrInvalid); refused != (size > 1) {
			t.Errorf("%d messages that take too many steps: %v", size, err)
		}
	}
}

// A batch that was classified by a policy which was replaced is sent again on the goroutine of its
// shard, but not if that takes long: not if it did before, and no further than it takes to see it.
func TestNothingExpensiveOnTheGoroutineOfTheShard(t *testing.T) {
	c := start(t)
	plain := withProperty("p", "a")
	if _, err := c.CreateQueue(t.Context(), entity.Queue{Name: "plain"}); err != nil {
		t.Fatal(err)
	}
	expensive := c.dearQueue(t)
	for _, x := range []struct {
		name  string
		n     *Entity
		batch []*message.Message
		steps int // that it took before
		want  error
	}{
		{"cheap", c.Entity("plain"), []*message.Message{plain}, 0, nil},
		{"expensive before", c.Entity("plain"), []*message.Message{plain}, stepsAgain + 1, ErrBusy},
		{"expensive now", expensive, dear(3), 0, ErrBusy},
	} {
		sent := make(chan error, 1)
		p := c.newSend(x.batch, func(_ []queue.SeqNo, err error) { sent <- err })
		p.n, p.out = x.n, fanOut{source: len(x.batch), most: limits.CopyBytes, steps: x.steps}
		p.answer(nil, queueserver.ErrSuperseded)
		if err := <-sent; !errors.Is(err, x.want) || (err == nil) != (x.want == nil) {
			t.Errorf("%s: %v, want %v", x.name, err, x.want)
		}
	}
}

// A policy that takes the place of an expensive one counts as expensive at first.
func TestExpensiveAfterAChange(t *testing.T) {
	c := start(t)
	n := c.dearQueue(t)
	n.Definition().Classifier.effort.note(muchEffort)
	if _, err := c.ReplacePolicy(t.Context(), "dear", []byte(`{"classes":[{"name":"b","level":1}]}`)); err != nil {
		t.Fatal(err)
	}
	if !n.Expensive() {
		t.Error("a new policy made the queue cheap at once")
	}
}

// An entity is expensive to send to after a message for which its conditions took long: of a
// queue its policy, of a topic its rules and the policies behind them.
func TestExpensiveEntities(t *testing.T) {
	const sql = dearSQL
	policy := []byte(fmt.Sprintf(`{"classes":[{"name":"a","level":9,"when":%q}]}`, sql))
	c := start(t)
	if _, err := c.CreateQueue(t.Context(), entity.Queue{Name: "queue", Policy: policy}); err != nil {
		t.Fatal(err)
	}
	c.topic(t, entity.Topic{Name: "rules"}, entity.Subscription{Name: "s", Rules: []entity.Rule{{Name: "r", Filter: entity.Filter{SQL: sql}}}})
	c.topic(t, entity.Topic{Name: "policies"}, entity.Subscription{Name: "s", Policy: policy})
	for _, name := range []string{"queue", "rules", "policies"} {
		n := c.Entity(name)
		for _, size := range []int{100, 30_000} {
			d := message.Draft{Application: []message.Pair{{Name: "p", Value: codec.String(strings.Repeat("a", size))}}}
			c.send(t, n, d.Message())
			if got, want := n.Expensive(), size > 1000; got != want {
				t.Errorf("%s is expensive after a property of %d bytes: %v, want %v", name, size, got, want)
			}
		}
	}
}
