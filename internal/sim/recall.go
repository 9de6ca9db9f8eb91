// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"

	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

var _ queueserver.Recaller = (*consumer)(nil)

// recalls is what a shardSim knows of recalled messages.
type recalls struct {
	outstanding map[taking]*consumer // outstanding deliveries of consumers that release on recall
	asked       map[taking]bool
	// why are the messages for which others were recalled.
	why  map[place]map[queue.SeqNo]bool
	open []asked // not answered yet
}

type asked struct {
	c *consumer
	token
}

func newRecalls() recalls {
	return recalls{outstanding: map[taking]*consumer{}, asked: map[taking]bool{}, why: map[place]map[queue.SeqNo]bool{}}
}

// Recall implements queueserver.Recaller: a better message must wait, and no other
// consumer may have a lower one; or another consumer must have credit.
func (c *consumer) Recall(tokens []queue.Token) {
	h, q := c.h, c.h.queue(c.place)
	h.follow(c.place)
	h.w.event("recall %d %v %v", h.number, c.place, tokens)
	h.w.result.Recalls++
	for _, t := range tokens {
		key := taking{c.place, t.Seq, t.Nonce}
		m := q.holder(h.now, t)
		switch {
		case c.over || !c.gives || c.want.ReceiveAndDelete:
			h.w.failf("%v: message %d was recalled from a consumer that releases nothing", c.place, t.Seq)
		case m == nil:
			h.w.failf("%v: message %d was recalled and is not locked", c.place, t.Seq)
		case h.recalls.asked[key]:
			h.w.failf("%v: message %d was recalled twice", c.place, t.Seq)
		}
		h.recalls.asked[key] = true
		h.recalls.open = append(h.recalls.open, asked{c, token{c.place, t, c.consumer}})
		if q.blurred(h.now) || q.paced() && !h.ticked {
			h.askedFor(c.place, q.messages) // any of them
			continue
		}
		h.checkRecall(c, q, m)
	}
}

func (h *shardSim) checkRecall(c *consumer, q *modelQueue, m *modelMessage) {
	best := q.choices(h.now, func(*modelMessage) bool { return true })
	reasons := slices.DeleteFunc(best, func(b *modelMessage) bool { return !c.accepts(b) || !q.ranksAbove(b, m) })
	if h.freeFor(c.place, m) {
		return // it is not known for which of them
	}
	if len(reasons) == 0 {
		h.w.failf("%v: message %d at level %d was recalled although no better one waits and no consumer is free\n%s", c.place, m.seq, m.level, q.why(h.now, m))
	}
	h.askedFor(c.place, reasons)
	if len(reasons) > 1 || q.mayShare(h.now) {
		return // it is not known for which, or what goes before what
	}
	for _, o := range h.recallable(c.place, q, reasons[0]) {
		if o.level < m.level {
			h.w.failf("%v: message %d at level %d was recalled before %d at level %d", c.place, m.seq, m.level, o.seq, o.level)
		}
	}
}

// freeFor reports whether a consumer that does not fetch ahead has credit for a message.
func (h *shardSim) freeFor(p place, m *modelMessage) bool {
	return slices.ContainsFunc(h.consumers, func(c *consumer) bool {
		return c.place == p && !c.over && !c.gives && c.delivered < c.limit && c.accepts(m)
	})
}

// askedFor records for which messages others were recalled.
func (h *shardSim) askedFor(p place, ms []*modelMessage) {
	if h.recalls.why[p] == nil {
		h.recalls.why[p] = map[queue.SeqNo]bool{}
	}
	for _, m := range ms {
		h.recalls.why[p][m.seq] = true
	}
}

// ranksAbove reports whether a ready message would be delivered before a locked
// one if that were released. Between levels with shares this is unknown.
func (q *modelQueue) ranksAbove(ready, held *modelMessage) bool {
	if q.mayShare(*q.now) {
		return ready.level > held.level
	}
	return ready.level > held.level && q.precedes(*q.now, ready, held)
}

// recallable returns the messages that could be recalled for a waiting one, as
// far as their consumers are known.
func (h *shardSim) recallable(p place, q *modelQueue, best *modelMessage) (ms []*modelMessage) {
	for _, m := range q.messages {
		key := taking{p, m.seq, m.nonce}
		c := h.recalls.outstanding[key]
		if c == nil || c.over || h.recalls.asked[key] || q.holder(h.now, queue.Token{Seq: m.seq, Nonce: m.nonce}) == nil {
			continue
		}
		if c.accepts(best) && q.ranksAbove(best, m) {
			ms = append(ms, m)
		}
	}
	return ms
}

// askedBack checks, when everything is at rest, that no consumer has a lower
// message while a better one waits, without a recall. It is only certain where
// time and round robin change nothing.
func (h *shardSim) askedBack(p place, q *modelQueue) {
	o := q.order
	if o.Discipline != queue.Strict || q.mayShare(h.now) || o.Fair || q.cfg.Sessions || q.cfg.ReceivePaused || q.blurred(h.now) {
		return
	}
	for _, best := range q.choices(h.now, func(*modelMessage) bool { return true }) {
		if h.recalls.why[p][best.seq] {
			continue
		}
		for _, m := range h.recallable(p, q, best) {
			h.w.failf("%v: message %d at level %d waits, and %d at level %d was not recalled", p, best.seq, best.level, m.seq, m.level)
		}
	}
}

// notHoarded checks, when everything is at rest, that no consumer has a message that was not
// recalled while one that does not fetch ahead has credit for it.
func (h *shardSim) notHoarded(p place, q *modelQueue) {
	asking := slices.ContainsFunc(h.recalls.open, func(a asked) bool { return a.c.place == p })
	if asking || q.paced() || q.cfg.Sessions || q.cfg.ReceivePaused || q.blurred(h.now) {
		return
	}
	for _, m := range q.messages {
		key := taking{p, m.seq, m.nonce}
		c := h.recalls.outstanding[key]
		if c != nil && !c.over && !h.recalls.asked[key] && q.holder(h.now, queue.Token{Seq: m.seq, Nonce: m.nonce}) != nil && h.freeFor(p, m) {
			h.w.failf("%v: message %d at level %d was not recalled, and a consumer has credit for it", p, m.seq, m.level)
		}
	}
}

// answerRecall answers a recall: the message was not started and is released
// for a better one; or it was started, and another consumer is asked.
func (h *shardSim) answerRecall() {
	a := h.recalls.open[0]
	h.recalls.open = h.recalls.open[1:]
	if h.w.chance(3) {
		h.w.event("post %d keep %v %v", h.number, a.place, a.Token)
		if err := h.s.DeclineRecall(a.c.consumer, []queue.Token{a.Token}); err != nil {
			h.w.failf("keep: %v", err)
		}
		return
	}
	x := &queueserver.Settle{ID: a.id, SubQueue: a.part, Tokens: []queue.Token{a.Token}, Disposition: queueserver.Release}
	h.postSettle(fmt.Sprintf("give back %v %v", a.place, a.Token), x)
	if !a.c.over {
		h.allowMore(a.c, 1)
	}
}
