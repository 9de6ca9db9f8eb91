// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/queue"
)

// policy draws a policy and the meta bytes by which it is found again.
func (w *world) policy() (*rules, []byte) {
	r := w.rules()
	w.made++
	meta := fmt.Sprintf("%d %s", w.made, r.text)
	w.policies[meta] = r
	return r, []byte(meta)
}

// reclass sets any level, class and key of a message.
func (x *managing) reclass() error {
	w := x.h.w
	return x.change(x.number(), queue.Classification{
		Level: queue.Level(w.rng.IntN(10)), Class: queue.Class(w.rng.IntN(4)), Key: []string{"", "t0", "t1"}[w.rng.IntN(3)],
	})
}

// classify reclassifies some messages by the policy of their queue, in any
// state and with any classification before.
func (x *managing) classify() error {
	from, most := x.number(), 1+x.h.w.rng.IntN(20)
	r := x.h.entities[x.id].rules
	ds, _ := x.real.Peek(x.s.Now(), queue.Peek{From: from, Max: most})
	for _, d := range ds {
		shown, err := x.s.Delivery(x.queue(), d)
		if err != nil {
			x.failf("message %d: %v", d.Seq, err)
		}
		body, err := shown.Message()
		if err != nil {
			x.failf("body of message %d: %v", d.Seq, err)
		}
		if err := x.change(d.Seq, x.h.w.classify(r, body)); err != nil {
			return err
		}
	}
	return nil
}

// change has a message reclassified: nothing else about it changes.
func (x *managing) change(seq queue.SeqNo, to queue.Classification) error {
	err := x.real.Reclassify(x.s.Now(), seq, to, x.out)
	m := x.model.find(seq)
	if (m == nil) != errors.Is(err, queue.ErrNotFound) {
		x.failf("reclass %d: %v", seq, err)
	}
	if m == nil {
		return err
	}
	x.model.catchUp(x.real)
	x.model.change()
	x.model.moved(m.key)
	x.model.moved(to.Key)
	m.level, m.class, m.key = to.Level, to.Class, to.Key
	x.model.forget()
	return err
}
