// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/message"
)

// rawPeer is a client that decides about its windows, and about what it reads.
type rawPeer struct {
	net.Conn
	t    testing.TB
	over sync.WaitGroup

	mu         sync.Mutex
	deliveries map[uint32][]int64 // sequence numbers by handle; guarded by mu
	flows      []frame.Flow       // guarded by mu
}

// raw connects a client that logs in, and opens a session with a window of so many
// transfers.
func (b *bench) raw(t testing.TB, window uint32) *rawPeer {
	t.Helper()
	return b.rawWith(t, window, 65536)
}

// rawWith is raw for a client that takes frames of so many bytes.
func (b *bench) rawWith(t testing.TB, window, maxFrame uint32) *rawPeer {
	t.Helper()
	ours, theirs := net.Pipe()
	p := &rawPeer{Conn: theirs, t: t, deliveries: map[uint32][]int64{}}
	ctx, cancel := context.WithCancel(t.Context())
	p.over.Go(func() {
		_ = b.service.Serve(ctx, endpoint.NewConn(ours, endpoint.Config{}), azure.Peer{Authority: b.keeper})
	})
	t.Cleanup(func() {
		theirs.Close()
		cancel()
		p.over.Wait()
	})
	p.write(frame.AppendProtocol(nil, frame.ProtocolSASL))
	p.skip(8)
	p.skipFrame() // the mechanisms
	init := frame.Init{Mechanism: "PLAIN", Response: []byte("\x00" + rootRule.Name + "\x00" + rootRule.PrimaryKey), HasResponse: true}
	sasl := init.Append(frame.AppendHeader(nil, frame.TypeSASL, 0))
	frame.SetSize(sasl, 0)
	p.write(sasl)
	p.skipFrame() // the outcome
	p.write(frame.AppendProtocol(nil, frame.ProtocolAMQP))
	p.skip(8)
	p.say(&frame.Open{ContainerID: "peer", MaxFrameSize: maxFrame, ChannelMax: 65535})
	p.say(&frame.Begin{IncomingWindow: window, OutgoingWindow: 100, HandleMax: 1023})
	return p
}

// skip reads so many bytes and forgets them.
func (p *rawPeer) skip(n int) []byte {
	p.t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(p.Conn, b); err != nil {
		p.t.Fatal(err)
	}
	return b
}

func (p *rawPeer) skipFrame() {
	p.t.Helper()
	h := frame.ParseHeader(p.skip(frame.HeaderSize))
	p.skip(int(h.Size) - frame.HeaderSize)
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

// reads reads what comes.
func (p *rawPeer) reads() { p.readsInto(p.take) }

// readsInto has take called for each frame that comes.
func (p *rawPeer) readsInto(take func(frame.Code, *codec.Reader, []byte)) {
	in := bufio.NewReaderSize(p.Conn, 1<<16)
	go func() { // ends when the pipe is closed
		for {
			head := make([]byte, frame.HeaderSize)
			if _, err := io.ReadFull(in, head); err != nil {
				return
			}
			h := frame.ParseHeader(head)
			rest := make([]byte, int(h.Size)-len(head))
			if _, err := io.ReadFull(in, rest); err != nil {
				return
			}
			if code, fields, payload, err := frame.Parse(rest); err == nil {
				take(code, &fields, payload)
			}
		}
	}()
}

func (p *rawPeer) take(code frame.Code, fields *codec.Reader, payload []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch code {
	case frame.CodeTransfer:
		var f frame.Transfer
		f.Decode(fields)
		if m, err := message.Parse(payload); err == nil && !f.More {
			v, _ := m.Annotation(names.AnnotationSequenceNumber)
			n, _ := v.Int()
			p.deliveries[f.Handle] = append(p.deliveries[f.Handle], n)
		}
	case frame.CodeFlow:
		var f frame.Flow
		f.Decode(fields)
		p.flows = append(p.flows, f)
	}
}

// got returns how many events have come on a link, in order and without a gap.
func (p *rawPeer) got(handle uint32) int {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, n := range p.deliveries[handle] {
		if n != p.deliveries[handle][0]+int64(i) {
			p.t.Fatalf("event %d has number %d, the first had %d", i, n, p.deliveries[handle][0])
		}
	}
	return len(p.deliveries[handle])
}

// lastFlow returns the last flow that has come; the zero one if none has.
func (p *rawPeer) lastFlow() (f frame.Flow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.flows); n > 0 {
		f = p.flows[n-1]
	}
	return f
}

// attach attaches a receiver.
func (p *rawPeer) attach(handle uint32, addr string) {
	p.t.Helper()
	p.say(&frame.Attach{
		Name: addr + string(rune('a'+handle)), Handle: handle, Role: frame.Receiver, SenderSettleMode: frame.SenderMixed,
		Source: &frame.Source{Address: addr}, Target: &frame.Target{},
	})
}

// flow grants credit, of which count was used.
func (p *rawPeer) flow(handle, count, credit uint32, drain bool) {
	p.t.Helper()
	p.say(&frame.Flow{
		HasNextIncomingID: true, NextIncomingID: count, IncomingWindow: 1 << 30, Handle: handle, HasHandle: true,
		HasDeliveryCount: true, DeliveryCount: count, LinkCredit: credit, HasLinkCredit: true, Drain: drain,
	})
}

// fill stores batches of events in a partition.
func (b *bench) fill(t testing.TB, addr string, batches, events, size int) {
	t.Helper()
	to, err := b.broker.OpenPublisher(addr)
	if err != nil {
		t.Fatal(err)
	}
	d := message.Draft{Body: make([]byte, size)}
	ms := make([]*message.Message, events)
	for i := range ms {
		ms[i] = d.Message()
	}
	s := &messageSender{to}
	done := make(chan error, batches)
	for range batches {
		s.Send(ms, func(err error) { done <- err })
	}
	for range batches {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// A drain as rhea and Qpid ask for it: what is there is sent, and the rest of the credit
// given up.
func TestDrain(t *testing.T) {
	for _, tt := range []struct {
		name         string
		there, grant int
	}{{"more credit than events", 5, 20}, {"more events than credit", 50, 20}, {"nothing", 0, 20}, {"many", 3000, 5000}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t)
				for range tt.there / 5 {
					b.fill(t, "h/Partitions/0", 1, 5, 100)
				}
				p := b.raw(t, 1<<30)
				p.reads()
				p.attach(0, partition(0))
				synctest.Wait()
				p.flow(0, 0, uint32(tt.grant), true)
				synctest.Wait()
				if got, want := p.got(0), min(tt.there, tt.grant); got != want {
					t.Errorf("%d events, want %d", got, want)
				}
				last := p.lastFlow()
				if !last.Drain || last.LinkCredit != 0 || last.DeliveryCount != uint32(tt.grant) {
					t.Errorf("the drain was answered by %+v", last)
				}
				b.fill(t, "h/Partitions/0", 1, 5, 100)
				synctest.Wait()
				if got, want := p.got(0), min(tt.there, tt.grant); got != want {
					t.Errorf("%d events after the drain, want %d", got, want)
				}
				p.flow(0, uint32(tt.grant), 5, false)
				synctest.Wait()
				if got, want := p.got(0), min(tt.there, tt.grant)+5; got != want {
					t.Errorf("%d events after more credit, want %d", got, want)
				}
			})
		})
	}
}

// A receiver that grants no credit holds nothing, whatever is there to read; nor does one
// at the end.
func TestIdleReceiversHoldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.fill(t, "h/Partitions/0", 20, 100, 256)
		p := b.raw(t, 1<<30)
		p.reads()
		p.attach(0, partition(0))
		p.attach(1, partition(1))
		synctest.Wait()
		p.flow(1, 0, 10_000, false) // there is nothing in it
		synctest.Wait()
		if got := p.got(0) + p.got(1); got != 0 {
			t.Fatalf("%d events without credit", got)
		}
		if used := b.memory.Usage().Used; used > 2*receiverCost+200<<10 {
			t.Errorf("two idle receivers hold %d bytes", used)
		}
		p.flow(0, 0, 10_000, false)
		synctest.Wait()
		if got := p.got(0); got != 2000 {
			t.Errorf("%d events, want 2000", got)
		}
	})
}

// A peer that does not read makes the broker hold a bounded amount, and gets everything
// when it does.
func TestSlowPeerHoldsABoundedAmount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		for i := range 4 {
			b.fill(t, partitionTo(i), 40, 1000, 256) // 10 MB each
		}
		p := b.raw(t, 1<<30)
		for i := range uint32(4) {
			p.attach(i, partition(int(i)))
		}
		// Now and then it reads, so that it is not cut off, and never more.
		buf := make([]byte, 4096)
		deadline := time.Now().Add(5 * time.Second)
		_ = p.Conn.SetReadDeadline(deadline)
		for i := range uint32(4) {
			p.flow(i, 0, 1<<20, false)
		}
		for range 4 {
			_, _ = p.Conn.Read(buf)
			synctest.Wait()
		}
		used := b.memory.Usage().Used
		if used < 1<<20 || used > 12<<20 {
			t.Errorf("%d bytes are held for a peer that reads nothing", used)
		}
		p.Conn.Close()
		synctest.Wait()
		if used := b.memory.Usage().Used; used != 0 {
			t.Errorf("%d bytes are held for nobody", used)
		}
	})
}

// partitionTo is the address of a partition for senders.
func partitionTo(n int) string { return "h/Partitions/" + string(rune('0'+n)) }

// With little memory for a connection its receivers take turns, and all get everything.
func TestReceiversShareLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startWith(t, budget.NewProcess(budget.Limits{Process: 2 << 20}))
		const batches, events = 20, 200
		for i := range 4 {
			b.fill(t, partitionTo(i), batches, events, 256)
		}
		p := b.raw(t, 1<<30)
		p.reads()
		for i := range uint32(4) {
			p.attach(i, partition(int(i)))
		}
		for i := range uint32(4) {
			p.flow(i, 0, 1<<20, false)
		}
		time.Sleep(10 * latestAgain)
		for i := range uint32(4) {
			if got := p.got(i); got != batches*events {
				t.Errorf("link %d has got %d of %d events", i, got, batches*events)
			}
		}
	})
}

// Thousands of attaches and detaches leave nothing behind.
func TestManyAttachesLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.fill(t, "h/Partitions/0", 5, 100, 256)
		p := b.raw(t, 1<<30)
		p.reads()
		for round := range 300 {
			for i := range uint32(8) {
				p.attach(i, partition(int(i)%5)) // one of them does not exist
			}
			if round%3 == 0 {
				synctest.Wait()
			}
			for i := range uint32(8) {
				if int(i)%5 == 4 {
					continue // refused
				}
				if round%2 == 0 {
					p.flow(i, 0, 50, false)
				}
			}
			for i := range uint32(8) {
				p.say(&frame.Detach{Handle: i, Closed: true})
			}
			synctest.Wait()
		}
		used := b.memory.Usage().Used
		if used > 1<<20 {
			t.Errorf("%d bytes are held after all receivers have left", used)
		}
		for i := range 4 {
			info, err := b.broker.PartitionInfo(t.Context(), "h", string(rune('0'+i)))
			if err != nil || len(info.Readers) > 0 {
				t.Errorf("partition %d has %d readers, %v", i, len(info.Readers), err)
			}
		}
		p.Conn.Close()
		synctest.Wait()
		if used := b.memory.Usage().Used; used != 0 {
			t.Errorf("%d bytes are held for nobody", used)
		}
	})
}
