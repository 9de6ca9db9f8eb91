// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// sendOp is a send on its way.
type sendOp struct {
	h       *shardSim
	send    queueserver.Send
	places  []queue.SeqNo // what Origin was before the topic counted
	want    error
	refused error
	done    bool // answered before it was durable: refused
	cursor  int  // copies that have arrived
	seqs    []queue.SeqNo
	admits  []admitCheck // requests that the admitters accepted
	evicted []eviction
}

// eviction is a message that must be evicted if the send is stored.
type eviction struct {
	q *modelQueue
	m *modelMessage
}

// send posts messages for one queue or for several, of which all get theirs or
// none.
func (h *shardSim) send() {
	w := h.w
	x := &sendOp{h: h}
	for range w.pick(1, 1, 1, 2, 5) {
		x.send.Bodies = append(x.send.Bodies, w.body())
	}
	for _, id := range h.targets() {
		for i := range x.send.Bodies {
			x.send.Copies = append(x.send.Copies, queueserver.Copy{ID: id, Body: i, Arrival: w.arrival(h.entities[id], x.send.Bodies[i])})
		}
	}
	if w.chance(6) {
		x.send.Topic = h.anyEntity().ID
		x.send.Published = len(x.send.Bodies)
		for i := range x.send.Copies {
			x.send.Copies[i].Arrival.Origin = queue.SeqNo(x.send.Copies[i].Body + 1)
		}
	}
	if t, ok := h.anyToken(); ok && w.chance(8) {
		x.send.Settle = queueserver.Locked{ID: t.id, SubQueue: t.part, Token: t.Token}
	}
	for _, c := range x.send.Copies {
		x.places = append(x.places, c.Arrival.Origin)
	}
	h.do(fmt.Sprintf("send %d", len(x.send.Copies)), x.before, func(o *op) error {
		x.send.Done = func(seqs []queue.SeqNo, err error) { x.answer(o, seqs, err) }
		return h.s.Send(&x.send)
	}, x.after)
}

// targets chooses the queues of a send, by number, none that is crowded.
func (h *shardSim) targets() []queueserver.ID {
	var ids []queueserver.ID
	for _, e := range h.sorted() {
		if len(e.parts[queueserver.Main].messages) < 100 && (len(ids) == 0 || h.w.chance(4)) {
			ids = append(ids, e.ID)
		}
	}
	if len(ids) > 1 && h.w.chance(2) {
		ids = ids[len(ids)-1:]
	}
	return ids
}

// arrival draws what a sender sets in a message.
func (w *world) arrival(e *modelEntity, m *message.Message) queue.Arrival {
	class := w.classify(e.rules, m)
	a := queue.Arrival{Level: class.Level, Class: class.Class, Key: class.Key}
	if w.chance(2) {
		a.MessageID = fmt.Sprint("id ", w.rng.IntN(30))
	}
	if e.Sessions && !w.chance(20) || w.chance(10) {
		a.Session, a.InSession = w.session(), true
	}
	if w.chance(8) {
		a.TTL = time.Duration(1+w.rng.IntN(20_000)) * time.Millisecond
	}
	if w.chance(8) {
		a.NotBefore = w.now.Add(time.Duration(w.rng.IntN(30_000)-3000) * time.Millisecond)
	}
	if w.chance(8) { // a reply
		a.OrderTime = w.now.Add(-time.Duration(w.rng.IntN(30_000)) * time.Millisecond)
	}
	return a
}

// runs calls fn for the copies that go to one queue, as the shard takes them.
func (x *sendOp) runs(fn func(p place, from, to int) error) error {
	for from := 0; from < len(x.send.Copies); {
		to := from + 1
		for to < len(x.send.Copies) && x.send.Copies[to].ID == x.send.Copies[from].ID {
			to++
		}
		if err := fn(place{id: x.send.Copies[from].ID}, from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}

func (x *sendOp) bodies(from, to int) (bs []*message.Message) {
	for _, c := range x.send.Copies[from:to] {
		bs = append(bs, x.send.Bodies[c.Body])
	}
	return bs
}

// before computes what the answer must be.
func (x *sendOp) before() {
	h := x.h
	h.sending = x
	published := x.send.Published > 0
	if published {
		if h.entities[x.send.Topic] == nil {
			x.want = queueserver.ErrNoEntity
			return
		}
		x.leaveOut()
	}
	x.want = x.runs(func(p place, from, to int) error {
		q := h.queue(p)
		switch {
		case q == nil && published:
			return nil
		case q == nil:
			return queueserver.ErrNoEntity
		}
		var as []queue.Arrival
		for _, c := range x.send.Copies[from:to] {
			as = append(as, c.Arrival)
		}
		return q.refusal(h.now, as, x.bodies(from, to))
	})
}

// leaveOut removes the copies for queues that no longer exist: a published
// message goes to the remaining ones.
func (x *sendOp) leaveOut() {
	places := x.places[:0]
	for i, c := range x.send.Copies {
		if x.h.entities[c.ID] != nil {
			places = append(places, x.places[i])
		}
	}
	x.places = places
}

// arrived has the model store what the queue has just stored, and the duplicates
// that it has dropped.
func (x *sendOp) arrived(o *observer, as []queue.Arrival) {
	x.evict()
	var run []queue.Arrival
	from := x.cursor
	for _, c := range x.send.Copies[from:] {
		if c.ID != o.id {
			break
		}
		want := x.places[x.cursor]
		if e := x.h.entities[x.send.Topic]; x.send.Published > 0 && e != nil {
			want += queue.SeqNo(e.Published)
		}
		if c.Arrival.Origin != want {
			x.h.w.failf("%v: message from %d, want %d", o.place, c.Arrival.Origin, want)
		}
		run = append(run, c.Arrival)
		x.cursor++
	}
	seqs := o.model().enqueue(x.h.now, x.h.version(), run, x.bodies(from, x.cursor))
	x.seqs = append(x.seqs, seqs...)
	for i, a := range run {
		if seqs[i] == 0 {
			continue
		}
		if len(as) == 0 || as[0].MessageID != a.MessageID || as[0].Origin != a.Origin {
			x.h.w.failf("%v: stored %+v, want %+v", o.place, as, a)
		}
		as = as[1:]
	}
	if len(as) > 0 {
		x.h.w.failf("%v: stored %+v, which are duplicates", o.place, as)
	}
}

// evict removes the evicted messages, before the first message is added.
func (x *sendOp) evict() {
	for _, e := range x.evicted {
		e.q.remove(e.m)
		x.h.w.result.Evicted++
	}
	x.evicted = nil
}

// after checks that it was all or nothing.
func (x *sendOp) after(o *op) {
	h := x.h
	h.sending = nil
	switch {
	case !x.done && x.want != nil:
		h.w.failf("%s: was taken, want %v", o.name, x.want)
	case x.done && !h.excused(x.refused) && (x.want == nil || !errors.Is(x.refused, x.want)):
		h.w.failf("%s: got %v, want %v", o.name, x.refused, x.want)
	case x.done && x.cursor > 0 || !x.done && x.cursor != len(x.send.Copies):
		h.w.failf("%s: %d of %d copies were stored", o.name, x.cursor, len(x.send.Copies))
	case x.done:
		return
	}
	for _, a := range x.admits {
		a.use()
	}
	x.evict()
	if e := h.entities[x.send.Topic]; x.send.Published > 0 && e != nil {
		e.Published += uint64(x.send.Published)
	}
	if l := x.send.Settle; l != (queueserver.Locked{}) {
		if q := h.queue(place{l.ID, l.SubQueue}); q != nil {
			if m := q.holder(h.now, l.Token); m != nil {
				q.remove(m)
			}
		}
	}
}

func (x *sendOp) answer(o *op, seqs []queue.SeqNo, err error) {
	if !o.ran {
		x.done, x.refused = true, err
	} else if err == nil && !slices.Equal(seqs, x.seqs) {
		x.h.w.failf("%s: got numbers %v, want %v", o.name, seqs, x.seqs)
	}
	x.h.answered(o, err)
}

// anyToken returns a token that was issued, valid or not.
func (h *shardSim) anyToken() (token, bool) {
	if len(h.stale) == 0 {
		return token{}, false
	}
	if len(h.stale) > 60 {
		h.stale = slices.Delete(h.stale, 0, 20)
	}
	// Mostly a recent one, which is still valid.
	i := len(h.stale) - 1 - h.w.rng.IntN(min(len(h.stale), h.w.pick(4, 10, 60)))
	return h.stale[i], true
}

// settle settles messages, also with tokens that are no longer valid.
func (h *shardSim) settle() {
	w := h.w
	t, ok := h.anyToken()
	if !ok {
		return
	}
	x := &queueserver.Settle{ID: t.id, SubQueue: t.part, Consumer: t.consumer, Tokens: []queue.Token{t.Token}, Reason: "because", Description: "at length"}
	for range w.rng.IntN(4) {
		if more, _ := h.anyToken(); more.place == t.place {
			x.Tokens = append(x.Tokens, more.Token)
		}
	}
	x.Disposition = []queueserver.Disposition{queueserver.Complete, queueserver.Complete, queueserver.Abandon, queueserver.Release, queueserver.Defer, queueserver.Reject}[w.rng.IntN(6)]
	if x.Disposition == queueserver.Abandon && w.durable.IntN(2) == 0 {
		x.RetryAfter = w.retryAfter()
	}
	if w.chance(3) {
		w.made++
		x.Properties = []message.Change{{Name: "note", Value: codec.Int(int32(w.made))}}
	}
	h.postSettle(fmt.Sprintf("settle %v %v with %d", t.place, x.Tokens, x.Disposition), x)
}

// postSettle posts a settlement. One that changes bodies may have to wait for them,
// and is then applied in the midst of other things.
func (h *shardSim) postSettle(name string, x *queueserver.Settle) {
	wants := make([]error, len(x.Tokens))
	var own *op
	h.do(name, func() {
		h.expectResults(x, wants)
		h.settling = own
	}, func(o *op) error {
		own, o.after = o, x.RetryAfter
		if x.Disposition != queueserver.Complete {
			o.set = x.Properties
		}
		x.Done = func(errs []error) {
			h.parted(o, x, errs, wants)
			h.compareResults(o, errs, wants)
		}
		return h.s.Settle(x)
	}, func(o *op) {
		h.settling = nil
		for i, t := range x.Tokens {
			key := taking{place{x.ID, x.SubQueue}, t.Seq, t.Nonce}
			if len(o.set) > 0 && wants[i] == nil && !slices.Contains(o.settled, t) {
				h.parked[key] = append(h.parked[key], o)
			}
		}
	})
}

// edit changes the body of a message that is being settled, if its settlement says
// so: the one whose turn it is, or one that had to wait for the body. It returns that.
func (h *shardSim) edit(key taking, q *modelQueue, m *modelMessage, body queue.Ref) *op {
	t := queue.Token{Seq: key.seq, Nonce: key.nonce}
	o := h.settling
	if o == nil {
		stored, err := h.s.Read(h.w.ctx, body)
		if err != nil {
			h.w.failf("%v: body of message %d: %v", key.place, key.seq, err)
		}
		i := slices.IndexFunc(h.parked[key], func(o *op) bool { return bytes.Equal(edited(m.plain, o.set).Bytes(), stored.Bytes()) })
		if i < 0 {
			h.w.failf("%v: message %d was settled, without a request for it", key.place, key.seq)
		}
		o = h.parked[key][i]
		h.parked[key] = slices.Delete(h.parked[key], i, i+1)
		o.version = max(o.version, h.version())
	}
	o.settled = append(o.settled, t)
	if len(o.set) > 0 {
		q.change()
		m.setBody(edited(m.plain, o.set))
		m.changed = h.version()
	}
	return o
}

// parted handles a settlement that had to wait and was not applied: the lock
// was lost while the body was read, or the disk is full, or the queue was
// deleted.
func (h *shardSim) parted(o *op, x *queueserver.Settle, errs, wants []error) {
	for i, t := range x.Tokens {
		key := taking{place{x.ID, x.SubQueue}, t.Seq, t.Nonce}
		j := slices.Index(h.parked[key], o)
		if j < 0 {
			continue
		}
		h.parked[key] = slices.Delete(h.parked[key], j, j+1)
		q := h.queue(key.place)
		switch {
		case errs == nil || errs[i] == nil:
			h.w.failf("%v: message %d: its settlement was answered and not applied", key.place, t.Seq)
		case q == nil && (errors.Is(errs[i], queue.ErrLockLost) || errors.Is(errs[i], queue.ErrSessionLockLost)):
			wants[i] = errs[i] // it was lost before the queue was dropped, which cannot be known any more
		case q == nil || errors.Is(plain(errs[i]), errDropped):
			wants[i] = errDropped
		case q.holder(h.now, t) == nil:
			wants[i] = q.lost()
		}
	}
}

// compareResults compares the answers to a settlement.
func (h *shardSim) compareResults(o *op, errs, wants []error) {
	for i := range wants {
		var got error
		if errs != nil {
			got = plain(errs[i])
		}
		if !errors.Is(got, wants[i]) && !h.excused(got) && !errors.Is(got, errDropped) {
			h.w.failf("%s: token %d: got %v, want %v", o.name, i, got, wants[i])
		}
	}
	h.answered(o, h.s.Failed())
}

// expectResults computes the result for each token; the observer does the rest.
func (h *shardSim) expectResults(x *queueserver.Settle, wants []error) {
	q := h.queue(place{x.ID, x.SubQueue})
	used := map[queue.Token]bool{}
	for i, t := range x.Tokens {
		if q == nil {
			wants[i] = queueserver.ErrNoEntity
			continue
		}
		m := q.holder(h.now, t)
		switch {
		case m == nil || used[t]:
			wants[i] = q.lost()
			continue
		case x.Disposition == queueserver.Reject && q.cfg.DeadLetterQueue:
			wants[i] = queue.ErrNotAllowed
			continue
		}
		used[t] = true
	}
}
