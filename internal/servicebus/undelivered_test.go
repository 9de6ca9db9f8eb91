// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/queue"
)

// rawPeer is a client that decides about its windows, and about what it reads.
type rawPeer struct {
	net.Conn
	t    *testing.T
	over sync.WaitGroup
}

// raw connects a client that is accepted without a token, and opens a session with a window
// of so many transfers.
func (b *bench) raw(t *testing.T, window uint32) *rawPeer {
	t.Helper()
	return b.rawWith(t, window, endpoint.Config{})
}

// rawWith is raw with settings of the broker's end.
func (b *bench) rawWith(t *testing.T, window uint32, cfg endpoint.Config) *rawPeer {
	t.Helper()
	ours, theirs := net.Pipe()
	p := &rawPeer{Conn: theirs, t: t}
	ctx, cancel := context.WithCancel(t.Context())
	p.over.Go(func() {
		_ = b.service.Serve(ctx, endpoint.NewConn(ours, cfg), azure.Peer{Authority: access.ForDevelopment(b.keeper)})
	})
	t.Cleanup(func() {
		theirs.Close()
		cancel()
		p.over.Wait()
	})
	p.write(frame.AppendProtocol(nil, frame.ProtocolAMQP))
	p.say(&frame.Open{ContainerID: "peer", MaxFrameSize: 65536, ChannelMax: 65535})
	p.say(&frame.Begin{IncomingWindow: window, OutgoingWindow: 100, HandleMax: 100})
	return p
}

// reads reads what comes and forgets it.
func (p *rawPeer) reads() {
	go func() { // ends when the pipe is closed
		buf := make([]byte, 1<<16)
		for {
			if _, err := p.Conn.Read(buf); err != nil {
				return
			}
		}
	}()
}

func (p *rawPeer) write(b []byte) {
	p.t.Helper()
	if _, err := p.Conn.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

func (p *rawPeer) say(f interface{ Append([]byte) []byte }) {
	p.t.Helper()
	b := f.Append(frame.AppendHeader(nil, frame.TypeAMQP, 0))
	frame.SetSize(b, 0)
	p.write(b)
}

// receive attaches a receiver and gives it credit.
func (p *rawPeer) receive(mode frame.SenderSettleMode, credit uint32) {
	p.t.Helper()
	p.say(&frame.Attach{
		Name: "r", Handle: 0, Role: frame.Receiver, SenderSettleMode: mode,
		Source: &frame.Source{Address: "q"}, Target: &frame.Target{},
	})
	synctest.Wait()
	p.say(&frame.Flow{
		HasNextIncomingID: true, IncomingWindow: 2, HasHandle: true,
		HasDeliveryCount: true, LinkCredit: credit, HasLinkCredit: true,
	})
	synctest.Wait()
}

// fill stores messages in q.
func (b *bench) fill(t *testing.T, n int) {
	t.Helper()
	p := b.login(t, rootRule)
	for i := range n {
		p.send("q", &amqp.Message{Value: fmt.Sprint(i)})
	}
	p.Close()
}

// counts returns how many messages of q are there, and how many of them are locked.
func (b *bench) counts(t *testing.T) (active, locked int64) {
	t.Helper()
	synctest.Wait()
	rt, err := b.broker.Runtime(t.Context(), "q")
	if err != nil {
		t.Fatal(err)
	}
	return rt.Active, rt.Locked
}

// failures checks that nothing counts against the messages of q.
func (b *bench) uncounted(t *testing.T) {
	t.Helper()
	ds, err := b.broker.Peek(t.Context(), "q", 0, 100, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range ds {
		if d.Failures != 0 {
			t.Errorf("message %d counts %d failures", d.Seq, d.Failures)
		}
	}
}

// What lies between the broker and the peer when a link ends goes back at
// once and uncounted, whichever side ends it and however.
func TestDeliveriesGoBackWhicheverWayTheLinkEnds(t *testing.T) {
	const n, window = 10, 2
	for _, mode := range []frame.SenderSettleMode{frame.SenderSettled, frame.SenderUnsettled} {
		for name, end := range map[string]func(p *rawPeer){
			"detach": func(p *rawPeer) { p.say(&frame.Detach{Closed: true}) },
			"end":    func(p *rawPeer) { p.say(&frame.End{}) },
			"close":  func(p *rawPeer) { p.say(&frame.Close{}) },
			"cut":    func(p *rawPeer) { p.Conn.Close() },
			"attach anew": func(p *rawPeer) {
				p.say(&frame.Attach{Name: "r", Handle: 1, Role: frame.Receiver, Source: &frame.Source{Address: "none"}, Target: &frame.Target{}})
			},
			"broken rules":  func(p *rawPeer) { p.write([]byte{0, 0, 0, 1, 2, 0, 0, 0}) },
			"unknown link ": func(p *rawPeer) { p.say(&frame.Detach{Handle: 77}) },
		} {
			t.Run(fmt.Sprintf("mode %d %s", mode, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := start(t)
					b.fill(t, n)
					p := b.raw(t, window)
					p.reads()
					p.receive(mode, n)
					wantActive, wantLocked := int64(n-window), int64(0)
					if mode == frame.SenderUnsettled {
						wantActive, wantLocked = n, window
						if _, locked := b.counts(t); locked != n {
							t.Fatalf("%d messages are locked, want all", locked)
						}
					} else if active, _ := b.counts(t); active != 0 {
						t.Fatalf("%d messages are left, want none", active)
					}
					end(p)
					if active, locked := b.counts(t); active != wantActive || locked != wantLocked {
						t.Fatalf("%d messages, %d of them locked, want %d and %d", active, locked, wantActive, wantLocked)
					}
					b.uncounted(t)
				})
			})
		}
	}
}

// The same for what was written out and the peer did not read.
func TestUnreadDeliveriesGoBack(t *testing.T) {
	for _, mode := range []frame.SenderSettleMode{frame.SenderSettled, frame.SenderUnsettled} {
		t.Run(fmt.Sprint("mode ", mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t)
				b.fill(t, 10)
				p := b.raw(t, 100)
				p.reads()
				p.say(&frame.Attach{
					Name: "r", Handle: 0, Role: frame.Receiver, SenderSettleMode: mode,
					Source: &frame.Source{Address: "q"}, Target: &frame.Target{},
				})
				synctest.Wait()
				p.Conn.SetReadDeadline(time.Unix(1, 0)) // from now on it reads nothing
				synctest.Wait()
				p.say(&frame.Flow{
					HasNextIncomingID: true, IncomingWindow: 100, HasHandle: true,
					HasDeliveryCount: true, LinkCredit: 10, HasLinkCredit: true,
				})
				synctest.Wait()
				p.Conn.Close()
				p.over.Wait()
				if active, locked := b.counts(t); active != 10 || locked != 0 {
					t.Fatalf("%d messages are there, %d of them locked, want all and none", active, locked)
				}
				b.uncounted(t)
			})
		})
	}
}

// keep is a sink that keeps what it gets.
type keep struct{ ds []broker.Delivery }

func (k *keep) Deliver(ds []broker.Delivery) { k.ds = append(k.ds, ds...) }
func (k *keep) Drained()                     {}
func (k *keep) Ended(error)                  {}

// A pre-settled delivery that waits for credit goes back with its link,
// and so does one that comes when the link has gone.
func TestStashedDeliveriesGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.fill(t, 2)
		k := new(keep)
		from, err := b.broker.OpenReceiver(t.Context(), "q", broker.ReceiverOptions{Mode: broker.ReceiveAndDelete, Sink: k})
		if err != nil {
			t.Fatal(err)
		}
		from.SetDeliveryLimit(2)
		if active, _ := b.counts(t); active != 0 || len(k.ds) != 2 {
			t.Fatalf("%d messages are left, %d came", active, len(k.ds))
		}
		from.Close()
		p := b.raw(t, 100)
		p.reads()
		p.receive(frame.SenderSettled, 0)
		var r *receiver
		synctest.Wait()
		ls := b.opened.last()
		ls.Do(func() {
			for found := range ls.receivers {
				r = found
			}
		})
		synctest.Wait()
		r.Deliver(k.ds[:1:1])
		synctest.Wait()
		if len(r.settledBacklog) != 1 {
			t.Fatalf("%d deliveries wait for credit, want 1", len(r.settledBacklog))
		}
		p.say(&frame.Detach{Closed: true})
		if active, _ := b.counts(t); active != 1 {
			t.Fatalf("%d messages are back, want the one that waited", active)
		}
		r.Deliver(k.ds[1:])
		if active, _ := b.counts(t); active != 2 {
			t.Fatalf("%d messages are back, want both", active)
		}
		b.uncounted(t)
	})
}

// When a token ends, so does what the broker keeps for the links that stood
// on it: a session is free for others at once.
func TestTokenThatEndsFreesItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.login(t, rootRule).sendInSession("a", "x")
		p := b.anonymous(t, b.keeper)
		p.rpc("$cbs").put(rootRule, "sb://ns.example/sessions", time.Now().Add(10*time.Second))
		r := p.receiver("sessions", inSession("a", 0))
		p.next(r)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		again := b.login(t, rootRule)
		if m := again.next(again.receiver("sessions", inSession("a", 0))); m.Value != "x" {
			t.Fatalf("got %v, want the message that was not settled", m.Value)
		}
	})
}

// Messages in a reply that cannot be sent go back, too.
func TestUnsentReplyGivesItsMessagesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		p := b.login(t, rootRule)
		seqs := p.deferMessages(1, 10)
		s := p.session()
		send, err := s.NewSender(p.ctx(), "q/$management", nil)
		if err != nil {
			t.Fatal(err)
		}
		replyTo := "q/$management-reply"
		if _, err := s.NewReceiver(p.ctx(), "q/$management", &amqp.ReceiverOptions{
			TargetAddress: replyTo, Credit: -1, RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr(),
		}); err != nil {
			t.Fatal(err)
		}
		if err := send.Send(p.ctx(), &amqp.Message{
			Properties:            &amqp.MessageProperties{MessageID: "1", ReplyTo: &replyTo},
			ApplicationProperties: map[string]any{"operation": "com.microsoft:receive-by-sequence-number"},
			Value:                 map[string]any{"sequence-numbers": seqs, "receiver-settle-mode": uint32(0)},
		}, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if rt, err := b.broker.Runtime(t.Context(), "q"); err != nil || rt.Deferred != 0 {
			t.Fatalf("%d messages are deferred, %v, want the reply to have it", rt.Deferred, err)
		}
		p.Close()
		synctest.Wait()
		if rt, err := b.broker.Runtime(t.Context(), "q"); err != nil || rt.Deferred != 1 {
			t.Fatalf("%d messages are deferred, %v, want the one that nobody got", rt.Deferred, err)
		}
	})
}

// So do those in a reply to a temporary node, whichever way its reader leaves, and in one
// that is larger than the reader takes.
func TestUnsentReplyToATemporaryNodeGivesItsMessagesBack(t *testing.T) {
	for name, c := range map[string]struct {
		o     amqp.ReceiverOptions
		leave func(p *peerOf, r *amqp.Receiver)
	}{
		"detach":    {amqp.ReceiverOptions{Credit: -1}, func(p *peerOf, r *amqp.Receiver) { r.Close(p.ctx()) }},
		"close":     {amqp.ReceiverOptions{Credit: -1}, func(p *peerOf, r *amqp.Receiver) { p.Close() }},
		"too large": {amqp.ReceiverOptions{Credit: 10, MaxMessageSize: 100}, func(p *peerOf, r *amqp.Receiver) {}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t)
				p, reader := b.login(t, rootRule), b.login(t, rootRule)
				seqs := p.deferMessages(1, 10)
				c.o.DynamicAddress = true
				node := reader.receiver("", &c.o)
				replyTo := node.Address()
				if err := p.sender("q/$management").Send(p.ctx(), &amqp.Message{
					Properties:            &amqp.MessageProperties{MessageID: "1", ReplyTo: &replyTo},
					ApplicationProperties: map[string]any{"operation": "com.microsoft:receive-by-sequence-number"},
					Value:                 map[string]any{"sequence-numbers": seqs, "receiver-settle-mode": uint32(0)},
				}, nil); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				c.leave(reader, node)
				synctest.Wait()
				if rt, err := b.broker.Runtime(t.Context(), "q"); err != nil || rt.Deferred != 1 {
					t.Fatalf("%d messages are deferred, %v, want the one that nobody got", rt.Deferred, err)
				}
			})
		})
	}
}

// What a link has never sent is given back with it, and nothing of the link stays with
// the connection, which may have many of them one after the other.
func TestLinksThatEndUnsentAreForgotten(t *testing.T) {
	for _, mode := range []frame.SenderSettleMode{frame.SenderSettled, frame.SenderUnsettled} {
		t.Run(fmt.Sprint("mode ", mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t)
				b.fill(t, 10)
				p := b.raw(t, 2)
				p.reads()
				p.receive(mode, 10)
				p.say(&frame.Detach{Closed: true})
				synctest.Wait()
				ls, kept := b.opened.last(), -1
				ls.Do(func() { kept = len(ls.unsent) })
				synctest.Wait()
				if kept != 0 {
					t.Errorf("%d links are kept that are gone", kept)
				}
			})
		})
	}
}

// A peer may settle a delivery of which it has got a part only. When the link ends before
// the rest has left, the delivery is not given back a second time.
func TestDeliverySettledBeforeItsEndHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		root := b.login(t, rootRule)
		root.send("q", amqp.NewMessage(make([]byte, 100_000)), &amqp.Message{Value: "small"})
		p := b.raw(t, 1)
		p.reads()
		p.say(&frame.Attach{
			Name: "r", Handle: 0, Role: frame.Receiver,
			Source: &frame.Source{Address: "q"}, Target: &frame.Target{},
		})
		synctest.Wait()
		p.say(&frame.Flow{
			HasNextIncomingID: true, IncomingWindow: 1, HasHandle: true,
			HasDeliveryCount: true, LinkCredit: 2, HasLinkCredit: true,
		})
		if _, locked := b.counts(t); locked != 2 {
			t.Fatalf("%d messages are locked, want both", locked)
		}
		// The link has had many deliveries unsettled at a time.
		ls := b.opened.last()
		ls.Do(func() {
			for r := range ls.receivers {
				var refs []uint64
				for i := range maxSpareEntries {
					refs = append(refs, r.locks.put(queue.Token{Seq: queue.SeqNo(i + 1)}))
				}
				for _, ref := range refs {
					r.locks.take(ref)
				}
			}
		})
		p.say(&frame.Disposition{Role: frame.Receiver, First: 0, Last: 0, Settled: true, State: frame.Accepted()})
		synctest.Wait()
		p.say(&frame.Detach{Closed: true})
		if active, locked := b.counts(t); active != 1 || locked != 0 {
			t.Errorf("%d messages, %d of them locked, want the small one and none", active, locked)
		}
		b.uncounted(t)
	})
}
