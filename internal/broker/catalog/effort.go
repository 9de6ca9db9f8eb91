// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
)

const (
	// muchEffort is how many steps rules or conditions take for a message that is expensive: some
	// hundred microseconds. Most take less than a hundredth of that.
	muchEffort = 10_000
	// muchInBatch is how many steps a batch may take before it counts as expensive, whatever each
	// of its messages takes: some milliseconds.
	muchInBatch = 50 * muchEffort
	// effortKept is how long an expensive message makes those after it count as expensive.
	effortKept = 10 * time.Second
)

// effort is whether rules or conditions are expensive to evaluate. The zero value is that they
// are not.
type effort struct {
	until atomic.Int64 // in Unix milliseconds
}

// note notes how many steps a message took.
func (e *effort) note(steps int) {
	if steps >= muchEffort {
		e.until.Store(time.Now().Add(effortKept).UnixMilli())
	}
}

// isMuch reports whether a message was expensive lately.
func (e *effort) isMuch() bool {
	until := e.until.Load()
	return until != 0 && time.Now().UnixMilli() < until
}

// evaluation is the turn of a batch for a processor. Once its rules or conditions are expensive, it
// waits for one: half of the processors stay free for others, however many connections send.
type evaluation struct {
	c     *Catalog
	n     *Entity
	waits bool  // as SendOptions.Waits says
	turn  *Turn // nil without one
}

// next is called before each message, with the steps that those before it took.
func (e *evaluation) next(steps int) {
	switch {
	case e.turn != nil:
		e.turn.share()
	case e.waits && (steps >= muchInBatch || e.n.Expensive()):
		e.turn = e.c.newTurn(e.n.Path)
	}
}

// end gives the turn back.
func (e *evaluation) end() { e.turn.End() }

const (
	// largeBatch is how many messages a batch has that takes turns, whatever is done with them: to
	// take them apart and to find where they go takes some hundred microseconds.
	largeBatch = 256
	// turnTime is how long a turn lasts while others may wait.
	turnTime = 10 * time.Millisecond
)

// Turn is the turn of a batch for a processor. All batches of an entity take turns, and with those
// of others. The zero value of *Turn is none, which a small batch does not need.
type Turn struct {
	c     *Catalog
	owner string
	leave func()
	since time.Time
}

// TurnFor waits for the turn of a batch of so many messages. The owner is the path of the entity
// that they are for, or the holder of the key of their sender. The turn is nil if they are few.
func (c *Catalog) TurnFor(owner string, messages int) *Turn {
	if messages <= largeBatch {
		return nil
	}
	return c.newTurn(owner)
}

func (c *Catalog) newTurn(owner string) *Turn {
	t := &Turn{c: c, owner: entity.Owner(owner)}
	t.take()
	return t
}

func (t *Turn) take() {
	t.leave = t.c.evaluating.Wait(t.owner)
	t.since = time.Now()
}

// share gives the turn to those who wait, if it has lasted for its time, and waits for the next
// one. A batch may take seconds.
func (t *Turn) share() {
	if time.Since(t.since) >= turnTime {
		t.leave()
		t.take()
	}
}

// End gives the turn back.
func (t *Turn) End() {
	if t != nil {
		t.leave()
	}
}

// ForProcessor waits for a processor that may evaluate for an entity what is expensive, until done is
// called.
func (c *Catalog) ForProcessor(n *Entity) (done func()) {
	return c.evaluating.Wait(entity.Owner(n.Path))
}

// Expensive reports whether the conditions of the policy took long for a message lately.
func (c *Classifier) Expensive() bool { return c.effort.isMuch() }

// Expensive reports whether sending to an entity takes a processor for long: because of the
// conditions of a policy, or the rules of a topic.
func (n *Entity) Expensive() bool {
	if n.Kind == KindTopic {
		return n.effort.isMuch()
	}
	return n.Definition().Classifier.Expensive()
}
