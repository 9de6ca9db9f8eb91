// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// queueApp is a tiny broker of its own connection: what is sent to an address can
// be received from it, oldest first. It exists to have a real client talk to the
// machine.
type queueApp struct {
	queues map[string]*testQueue
	tag    uint64
	closed chan error // capacity 1
	// crowded makes every so many-th question for space be answered with no, once;
	// zero is never.
	crowded, asked int
	given          bool // space that no delivery has used yet
}

type testQueue struct {
	ready   [][]byte
	readers []*Link
}

func newQueueApp() *queueApp {
	return &queueApp{queues: map[string]*testQueue{}, closed: make(chan error, 1)}
}

func (a *queueApp) queue(name string) *testQueue {
	if a.queues[name] == nil {
		a.queues[name] = new(testQueue)
	}
	return a.queues[name]
}

func (a *queueApp) Mechanisms() []string { return []string{"ANONYMOUS", "PLAIN"} }

func (a *queueApp) Login(mechanism string, response []byte) error {
	if mechanism == "PLAIN" && string(response) != "\x00guest\x00secret" {
		return errors.New("wrong password")
	}
	return nil
}

func (a *queueApp) Opened(*frame.Open) error { return nil }

func (a *queueApp) Attach(l *Link) {
	switch {
	case l.Remote().Coordinator != nil:
		l.Refuse(Errorf(CondNotImplemented, "no transactions"))
	case l.Address() == "missing":
		l.Refuse(Errorf(CondNotFound, "no queue %q", l.Address()))
	case l.Role() == frame.Receiver:
		l.Accept(Accept{Credit: 100, MaxMessageSize: 4 << 20})
	default:
		if l.Address() == pollAddress {
			l.DrainEach(codec.AppendValue(nil, codec.Map(codec.Symbol("polled"), codec.Bool(true))))
		}
		q := a.queue(l.Address())
		q.readers = append(q.readers, l)
		l.Accept(Accept{})
	}
}

// pollAddress is where each grant of credit is drained.
const pollAddress = "polls"

func (a *queueApp) Reserve(*Link, Arriving) bool {
	a.asked++
	if a.crowded > 0 && a.asked%a.crowded == 0 {
		return false
	}
	a.given = true
	return true
}

func (a *queueApp) Transfer(l *Link, in *Incoming) {
	if !a.given {
		panic("a delivery that there was no space for")
	}
	a.given = false
	q := a.queue(l.Address())
	q.ready = append(q.ready, bytes.Clone(in.Payload))
	l.Settle(in.Delivery, frame.Accepted())
	a.deliver(q)
}

func (a *queueApp) deliver(q *testQueue) {
	for _, l := range q.readers {
		for len(q.ready) > 0 && l.Credit() > 0 {
			a.tag++
			err := l.Send(Outgoing{
				Tag:     binary.BigEndian.AppendUint64(nil, a.tag),
				Payload: q.ready[0],
				Settled: l.Remote().SenderSettleMode == frame.SenderSettled,
				Value:   q.ready[0],
			})
			if err != nil {
				panic(err)
			}
			q.ready = q.ready[1:]
		}
		l.DrainDone()
	}
}

func (a *queueApp) Credit(l *Link) { a.deliver(a.queue(l.Address())) }

func (a *queueApp) Disposition(l *Link, o *Outcome) {
	q := a.queue(l.Address())
	for _, d := range o.Deliveries {
		if o.State.Kind == frame.StateReleased || o.State.Kind == frame.StateModified {
			q.ready = append(q.ready, d.Value.([]byte))
		}
		if !o.Settled {
			l.SettleOut(d.ID, frame.Accepted())
		}
	}
	a.deliver(q)
}

func (a *queueApp) Detached(l *Link, err error) {
	q := a.queue(l.Address())
	for i, r := range q.readers {
		if r == l {
			q.readers = append(q.readers[:i:i], q.readers[i+1:]...)
			return
		}
	}
}

func (a *queueApp) Closed(err error) { a.closed <- err }
