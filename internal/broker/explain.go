// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Explanation explains the position of a message and estimates its delivery.
type Explanation struct {
	Entity     string      `json:"entity"`
	Seq        queue.SeqNo `json:"sequenceNumber"`
	State      string      `json:"state"`
	Class      string      `json:"class"` // empty is none
	Why        string      `json:"why"`   // explains class and level
	Level      queue.Level `json:"level"`
	Rank       int         `json:"rank"` // effective level now
	Discipline string      `json:"discipline"`
	Within     string      `json:"levelOrder"` // the order inside its level
	Saturated  bool        `json:"saturated"`  // levels are served by weight at present
	EnqueuedAt time.Time   `json:"enqueuedAt"`
	Since      *time.Time  `json:"orderTime,omitempty"` // order time of a reply
	Waited     float64     `json:"waited"`              // seconds
	Failures   uint32      `json:"failures"`

	// Due is when it must start to meet the objective of its level, under the
	// discipline deadline. LateLevel is the lowest level, from its own up, that has late
	// messages: they go after higher levels and before lower ones.
	Due       *time.Time `json:"due,omitempty"`
	LateLevel *int       `json:"lateLevel,omitempty"`

	Boost *Boost `json:"boostedBy,omitempty"` // message that advances its session

	Ahead   int     `json:"ahead"` // messages that are delivered before it
	AheadBy []Ahead `json:"aheadBy"`

	BlockedBy    string     `json:"blockedBy,omitempty"` // why it cannot be delivered now
	BlockedUntil *time.Time `json:"blockedUntil,omitempty"`
	Consumers    int        `json:"consumers"`

	// Start is the estimate, in seconds from now; nil is none. Calculation explains it, or
	// why there is none.
	Start       *float64 `json:"start"`
	Calculation string   `json:"calculation"`

	At time.Time `json:"at"`
}

// Boost is the level at which a session is ranked, and the message that has it.
type Boost struct {
	By    queue.SeqNo `json:"by"`
	Level queue.Level `json:"level"`
	Rank  int         `json:"rank"` // effective level now
}

// Ahead is how many messages of a level are delivered before.
type Ahead struct {
	Level   queue.Level `json:"level"`
	Classes []string    `json:"classes"` // that have the level
	Count   int         `json:"count"`
}

// Explain explains the position of the message with that sequence number. It visits every
// ready message, in steps, so it is for people, not for programs.
func (b *Broker) Explain(ctx context.Context, addr string, seq queue.SeqNo) (Explanation, error) {
	n, part, err := b.Readable(addr)
	if err != nil {
		return Explanation{}, err
	}
	def := n.Definition()
	found, err := queueserver.Do(ctx, n.Shard, queueserver.Explain{Queue: n.QueueID(part), Seq: seq})
	if err != nil {
		return Explanation{}, err
	}
	if err := catalog.Charge(ctx, found.Message.Size()); err != nil {
		return Explanation{}, err
	}
	m, err := found.Message.Message()
	if err != nil {
		return Explanation{}, err
	}
	x := Explanation{Entity: n.Path, Seq: seq, At: found.At.UTC(), Consumers: found.Consumers}
	x.setPosition(found.Position, def.Classifier.Policy)
	x.Why = b.why(n, def.Classifier, m, &found.Message.Delivery)
	x.setBlocked(found.Position, def)
	x.estimate(found.Position, found.Rate)
	return x, nil
}

// why explains the class of a message, which takes as long as to classify it.
func (b *Broker) why(n *catalog.Entity, c *catalog.Classifier, m *message.Message, d *queue.Delivery) string {
	defer b.ForProcessor(n)()
	return c.Why(m, d)
}

// setPosition sets the effective level and the messages before it.
func (x *Explanation) setPosition(pos queue.Position, p *policy.Policy) {
	x.State = [...]string{"waiting", "deferred", "scheduled", "locked", "retrying"}[pos.State]
	x.Class, x.Level, x.Rank, x.Failures = p.ClassName(uint8(pos.Class)), pos.Level, pos.Rank, pos.Failures
	x.Discipline, x.Within, x.Saturated = p.Discipline.String(), p.LevelOrder.String(), pos.Saturated
	x.EnqueuedAt, x.Waited = pos.EnqueuedAt, max(x.At.Sub(pos.EnqueuedAt), 0).Seconds()
	if l := pos.Boost; l.Seq != 0 {
		x.Boost = &Boost{By: l.Seq, Level: l.Level, Rank: l.Rank}
	}
	if !pos.OrderTime.IsZero() {
		x.Since = &pos.OrderTime
	}
	if !pos.Due.IsZero() {
		x.Due = &pos.Due
	}
	if pos.LateLevel >= 0 {
		x.LateLevel = &pos.LateLevel
	}
	x.AheadBy = []Ahead{}
	for _, level := range slices.Backward(slices.Sorted(maps.Keys(pos.Ahead))) {
		a := Ahead{Level: level, Count: pos.Ahead[level], Classes: []string{}}
		for _, c := range p.Classes {
			if !c.LevelFromMessage && c.Level == uint8(level) {
				a.Classes = append(a.Classes, c.Name)
			}
		}
		x.Ahead += a.Count
		x.AheadBy = append(x.AheadBy, a)
	}
}

// setBlocked sets why the message cannot be delivered now, if it cannot.
func (x *Explanation) setBlocked(pos queue.Position, def *catalog.Definition) {
	switch pos.BlockedBy {
	case queue.BlockedByLock:
		x.BlockedBy = "a consumer has it locked"
	case queue.BlockedBySchedule:
		x.BlockedBy = "it is scheduled for later"
	case queue.BlockedByDeferral:
		x.BlockedBy = "it is deferred; receive it by its sequence number"
	case queue.BlockedByPause:
		x.BlockedBy = "receiving is paused"
		if !def.Properties.Status.CanReceive() {
			x.BlockedBy = fmt.Sprintf("the entity is disabled (status %s)", def.Properties.Status)
		}
	case queue.BlockedBySession:
		x.BlockedBy = fmt.Sprintf("its session %q is locked by a consumer", pos.Session)
	case queue.BlockedByCap:
		x.BlockedBy = fmt.Sprintf("its fair key %q has reached its concurrency limit", pos.Key)
	case queue.BlockedByRetry:
		x.BlockedBy = "a delivery has failed, and it waits for the time of the next one"
		if pos.State != queue.Retrying {
			x.BlockedBy = fmt.Sprintf("a delivery in its session %q has failed, which waits for the time of the next one", pos.Session)
		}
	case queue.BlockedByRate:
		x.BlockedBy = fmt.Sprintf("its fair key %q has reached its rate limit", pos.Key)
	default:
		if x.Consumers == 0 {
			x.BlockedBy = "no consumer is attached"
		}
	}
	if !pos.BlockedUntil.IsZero() {
		x.BlockedUntil = &pos.BlockedUntil
	}
}

// estimate estimates when the message is delivered: the messages before it, at the recent
// rate of completion.
func (x *Explanation) estimate(pos queue.Position, rate float64) {
	switch {
	case pos.BlockedBy == queue.BlockedByLock:
		x.Calculation = "it has started already"
		return
	case pos.BlockedBy == queue.BlockedByDeferral, pos.BlockedBy == queue.BlockedByPause:
		x.Calculation = "unknown: " + x.BlockedBy
		return
	case (pos.BlockedBy == queue.BlockedBySchedule || pos.BlockedBy == queue.BlockedByRetry) && x.BlockedUntil != nil:
		s := max(x.BlockedUntil.Sub(x.At), 0).Seconds()
		x.Start = &s
		x.Calculation = fmt.Sprintf("at %s at the earliest, and then by its place", x.BlockedUntil.Format(time.RFC3339))
		return
	case x.Consumers == 0:
		x.Calculation = "unknown: no consumer is attached"
		return
	case rate < 1e-3:
		x.Calculation = "unknown: nothing was completed in the last minutes"
		return
	}
	s := float64(x.Ahead) / rate
	if x.BlockedUntil != nil {
		s = max(s, x.BlockedUntil.Sub(x.At).Seconds())
	}
	x.Start = &s
	x.Calculation = fmt.Sprintf("%d ahead / %.3g completed per second = %s", x.Ahead, rate, brief(s))
}

// Text returns the explanation in sentences.
func (x Explanation) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Message %d of %s is %s, since %s (%s).\n", x.Seq, x.Entity, x.State,
		x.EnqueuedAt.Format(time.RFC3339), brief(x.Waited))
	fmt.Fprintf(&b, "Why this priority: %s.\n", x.Why)
	if x.Since != nil {
		fmt.Fprintf(&b, "Its age counts from %s, when the request arrived that it answers.\n", x.Since.Format(time.RFC3339))
	}
	if x.Rank != int(x.Level) {
		fmt.Fprintf(&b, "Aging raised it from level %d to %d.\n", x.Level, x.Rank)
	}
	if l := x.Boost; l != nil {
		fmt.Fprintf(&b, "Its session is ranked at level %d because of message %d.\n", l.Rank, l.By)
	}
	if x.Failures > 0 {
		fmt.Fprintf(&b, "It was delivered and failed %s before.\n", times(int(x.Failures)))
	}
	if x.State == "waiting" {
		b.WriteString(x.dueText())
		b.WriteString(x.aheadText())
	}
	if x.BlockedBy != "" {
		fmt.Fprintf(&b, "Blocked: %s", x.BlockedBy)
		if x.BlockedUntil != nil {
			fmt.Fprintf(&b, ", until %s", x.BlockedUntil.Format(time.RFC3339))
		}
		b.WriteString(".\n")
	}
	if x.Start != nil {
		fmt.Fprintf(&b, "It should start in about %s: %s.\n", brief(*x.Start), x.Calculation)
	} else if x.State != "locked" {
		fmt.Fprintf(&b, "When it will start is %s.\n", x.Calculation)
	}
	return b.String()
}

// dueText says when the message is due, and what serves it by its level instead.
func (x Explanation) dueText() string {
	if x.Due == nil {
		return ""
	}
	left := x.Due.Sub(x.At)
	text := fmt.Sprintf("It is due at %s, in %s.\n", x.Due.Format(time.RFC3339), brief(left.Seconds()))
	if left < 0 {
		text = fmt.Sprintf("It was due at %s, %s ago.\n", x.Due.Format(time.RFC3339), brief(-left.Seconds()))
	}
	switch by := x.LateLevel; {
	case by == nil:
	case *by > int(x.Level):
		text += fmt.Sprintf("Messages of level %d are late: they and higher levels go first.\n", *by)
	case left < 0:
		text += fmt.Sprintf("It is late, so higher levels go first, and level %d goes by age.\n", x.Level)
	default:
		text += fmt.Sprintf("An older message of level %d is late, so higher levels go first, then that one.\n", x.Level)
	}
	return text
}

func (x Explanation) aheadText() string {
	if x.Ahead == 0 {
		return fmt.Sprintf("Nothing is ahead of it; it is next (%s).\n", x.mode())
	}
	var parts []string
	for _, a := range x.AheadBy {
		who := cmp.Or(strings.Join(a.Classes, " and "), "no class")
		parts = append(parts, fmt.Sprintf("%d of %s (level %d)", a.Count, who, a.Level))
	}
	return fmt.Sprintf("Ahead of it (%s): %s.\n", x.mode(), strings.Join(parts, ", "))
}

// mode is the order that is in force.
func (x Explanation) mode() string {
	text := x.Discipline
	if x.Saturated {
		text += ", by weight while the queue is saturated"
	}
	if x.Within != ordering.Fifo.String() {
		text += ", " + x.Within + " inside a level"
	}
	return text
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// brief formats seconds with few digits.
func brief(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}
