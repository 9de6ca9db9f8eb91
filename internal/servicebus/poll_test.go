// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/entity"
)

// pollLink is the handle of the link that polls; the link of receive has another.
const pollLink = 1

// poll attaches a link that polls a queue.
func (p *rawPeer) poll(queue string) {
	p.t.Helper()
	p.say(&frame.Attach{
		Name: "poll", Handle: pollLink, Role: frame.Receiver, Source: &frame.Source{Address: queue}, Target: &frame.Target{},
		Properties: codec.AppendValue(nil, codec.Map(codec.Symbol(names.Poll), codec.Bool(true))),
	})
	synctest.Wait()
}

// credit asks for messages on the link that polls, and says how far the window is open.
func (p *rawPeer) credit(n, next, window uint32) {
	p.t.Helper()
	p.say(&frame.Flow{
		HasNextIncomingID: true, NextIncomingID: next, IncomingWindow: window, HasHandle: true, Handle: pollLink,
		HasDeliveryCount: true, LinkCredit: n, HasLinkCredit: true,
	})
	synctest.Wait()
}

// inbox keeps what a peer reads.
type inbox struct {
	mu   sync.Mutex
	sent []byte // guarded by mu
}

// reads has the peer read until stop is called.
func (x *inbox) reads(p *rawPeer) (stop func()) {
	p.SetReadDeadline(time.Time{})
	go func() { // ends when the deadline is set, or the pipe is closed
		buf := make([]byte, 1<<16)
		for {
			n, err := p.Read(buf)
			x.mu.Lock()
			x.sent = append(x.sent, buf[:n]...)
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return func() {
		p.SetReadDeadline(time.Unix(1, 0))
		synctest.Wait()
	}
}

// poll returns how many deliveries the link that polls got before the end of its poll, and
// whether that was told.
func (x *inbox) poll(t *testing.T) (deliveries int, over bool) {
	t.Helper()
	synctest.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	for in := x.sent[len(frame.AppendProtocol(nil, frame.ProtocolAMQP)):]; len(in) >= frame.HeaderSize; {
		h := frame.ParseHeader(in)
		if len(in) < int(h.Size) {
			break
		}
		code, fields, _, err := frame.Parse(in[frame.HeaderSize:h.Size])
		if err != nil {
			t.Fatal(err)
		}
		in = in[h.Size:]
		switch code {
		case frame.CodeTransfer:
			var f frame.Transfer
			if f.Decode(&fields); f.Handle == pollLink && f.HasDeliveryID {
				deliveries++
			}
		case frame.CodeFlow:
			var f frame.Flow
			if f.Decode(&fields); f.HasHandle && f.Handle == pollLink && len(f.Properties) > 0 {
				return deliveries, true
			}
		}
	}
	return deliveries, false
}

// A poll gets what there is, also if nothing can be sent when it is asked for: because the
// window of the session is closed, or because the peer is slow to read what another link
// was sent. It is answered when that has changed, however often it is asked for meanwhile.
func TestPollWaitsForAConnectionThatIsCongested(t *testing.T) {
	const there = 3
	for _, tt := range []struct {
		name   string
		window uint32 // of the session at first
		size   int    // of the messages for the other link
		asked  int    // how often
	}{
		{"closed window", 2, 10, 1},
		{"closed window, asked twice", 2, 10, 2},
		{"slow reader", 1000, 200_000, 1},
		{"slow reader, asked twice", 1000, 200_000, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t)
				if _, err := b.broker.CreateQueue(t.Context(), entity.Queue{Name: "polled"}); err != nil {
					t.Fatal(err)
				}
				root := b.login(t, rootRule)
				for range 3 {
					root.send("q", amqp.NewMessage(make([]byte, tt.size)))
				}
				for range there {
					root.send("polled", amqp.NewMessage([]byte("there")))
				}
				root.Close()
				p, x := b.rawWith(t, tt.window, endpoint.Config{HighOutput: 40_000}), new(inbox)
				stop := x.reads(p)
				p.poll("polled")
				p.say(&frame.Attach{Name: "r", Role: frame.Receiver, Source: &frame.Source{Address: "q"}, Target: &frame.Target{}})
				synctest.Wait()
				if tt.size > 1000 {
					stop()
				}
				p.say(&frame.Flow{
					HasNextIncomingID: true, IncomingWindow: tt.window, HasHandle: true, HasDeliveryCount: true, LinkCredit: 3, HasLinkCredit: true,
				})
				synctest.Wait()
				for range tt.asked {
					p.credit(5, 0, tt.window)
				}
				if n, over := x.poll(t); n != 0 || over {
					t.Fatalf("%d deliveries, over: %t; nothing can be sent yet", n, over)
				}
				if tt.size > 1000 {
					x.reads(p)
				} else {
					p.say(&frame.Flow{HasNextIncomingID: true, IncomingWindow: 1000})
				}
				if n, over := x.poll(t); n != there || !over {
					t.Errorf("the poll got %d deliveries, over: %t; want all %d and its end", n, over, there)
				}
			})
		})
	}
}
