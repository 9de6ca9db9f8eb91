// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"bufio"
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/message"
)

// wideAttach is an attach of a hundred bytes with five arrays of 65,536 nulls where
// symbols are wanted.
func wideAttach(handle uint32) raw {
	wide := wideArray(1 << 16)
	terminus := func(b []byte, code frame.Code, nulls int, arrays int) []byte {
		b = codec.AppendDescriptor(b, uint64(code))
		b, at := codec.BeginList(b)
		b = codec.AppendString(b, "q")
		for range nulls {
			b = codec.AppendNull(b)
		}
		for range arrays {
			b = append(b, wide...)
		}
		return codec.EndList(b, at, 1+nulls+arrays)
	}
	b := codec.AppendDescriptor(nil, uint64(frame.CodeAttach))
	b, at := codec.BeginList(b)
	b = codec.AppendString(b, fmt.Sprint(handle))
	b = codec.AppendUint(b, handle)
	b = codec.AppendBool(b, bool(frame.Receiver))
	b = codec.AppendNull(codec.AppendNull(b)) // settle modes
	b = terminus(b, frame.CodeSource, 8, 2)   // outcomes, capabilities
	b = terminus(b, frame.CodeTarget, 5, 1)   // capabilities
	for range 4 {                             // unsettled to max-message-size
		b = codec.AppendNull(b)
	}
	b = append(append(b, wide...), wide...) // capabilities of the link
	return codec.EndList(b, at, 13)
}

// attachesWithWideArrays is number 5: 32 KB from an unauthenticated peer.
func attachesWithWideArrays(s *scene) {
	p := s.outsider()
	before, _ := s.resident()
	sent := 0
	for i := range uint32(250) {
		a := wideAttach(i)
		if err := p.within(patience).send(a); err != nil {
			s.Logf("attach %d: %v", i, err)
			break
		}
		sent += len(a)
	}
	// With any answer, the frame after the attaches has been read when the session
	// ends.
	_ = p.send(new(frame.End))
	_, err := p.within(patience).await(frame.CodeEnd)
	_, peak := s.resident()
	s.Logf("%d bytes were sent: %v; memory grew by %d MiB", sent, err, (peak-before)>>20)
	if peak-before > 64<<20 {
		s.Errorf("%d bytes from an unauthenticated peer took %d MiB", sent, (peak-before)>>20)
	}
}

// slowly reads a connection at a limited rate.
type slowly struct {
	net.Conn
	perSecond int
	begin     time.Time
	read      int
}

func (c *slowly) Read(b []byte) (int, error) {
	if c.begin.IsZero() {
		c.begin = time.Now()
	}
	due := c.begin.Add(time.Duration(float64(c.read) / float64(c.perSecond) * float64(time.Second)))
	<-time.After(time.Until(due))
	n, err := c.Conn.Read(b[:min(len(b), 32<<10)])
	c.read += n
	return n, err
}

// slowReceivers is number 9: receivers with a prefetch of 200, of messages of
// 250 KB, that read all the time and receive 20 MB/s together. None of them
// violates the protocol.
func slowReceivers(s *scene) {
	const prefetch, size, speed = 200, 250 << 10, 20 << 20
	body := []byte(longText(size - 1<<10))
	s.fill("heavy", prefetch, func(int) message.Draft { return message.Draft{Body: body} })
	var received, cut atomic.Int64
	until := time.Now().Add(time.Duration(scale(6, 45)) * time.Second)
	together(slowReaders, slowReaders, func(i int) {
		if err := s.readSlowly(fmt.Sprintf("heavy/subscriptions/s%d", i), prefetch, speed/slowReaders, until, &received); err != nil {
			s.Errorf("receiver %d was cut off: %v", i, err)
			cut.Add(1)
		}
	})
	s.Logf("%d messages arrived, %d receivers were disconnected", received.Load(), cut.Load())
	if received.Load() == 0 {
		s.Error("no message arrived")
	}
}

// readSlowly receives and accepts messages until the time is up.
func (s *scene) readSlowly(addr string, prefetch, speed int, until time.Time, received *atomic.Int64) error {
	nc, err := s.dialFrom(s.ctx, net.IPv4(127, 0, 0, 1))
	if err != nil {
		return err
	}
	defer nc.Close()
	nc.(*net.TCPConn).SetReadBuffer(64 << 10)
	conn, err := amqp.NewConn(s.ctx, &slowly{Conn: nc, perSecond: speed}, &amqp.ConnOptions{
		SASLType: amqp.SASLTypePlain(listenKey.Name, listenKey.PrimaryKey)})
	if err != nil {
		return err
	}
	session, err := conn.NewSession(s.ctx, nil)
	if err != nil {
		return err
	}
	r, err := session.NewReceiver(s.ctx, addr, &amqp.ReceiverOptions{Credit: int32(prefetch)})
	if err != nil {
		return err
	}
	for time.Now().Before(until) {
		ctx, cancel := contextUntil(s.ctx, until)
		m, err := r.Receive(ctx, nil)
		over := ctx.Err() != nil
		if cancel(); over {
			return nil
		}
		if err != nil {
			return err
		}
		received.Add(1)
		if err := r.AcceptMessage(s.ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// unfinishedTokens is the part of number 12 about $cbs: unauthenticated peers
// begin requests of 4 MB and do not end them.
func unfinishedTokens(s *scene) {
	var written, refusals atomic.Int64
	part := make([]byte, maxPart)
	together(160, 80, func(i int) {
		p, err := s.connect(net.IPv4(127, 0, 1, byte(1+i/20)))
		if err == nil {
			err = p.open("ANONYMOUS", nil)
		}
		if err == nil {
			_, err = p.attach(sendTo(0, "$cbs"))
		}
		if err != nil {
			refusals.Add(1)
			return
		}
		p.within(2 * time.Second)
		for n := 0; n < 4<<20-2*maxPart; n += maxPart {
			t := frame.Transfer{More: true}
			if n == 0 {
				t.HasDeliveryID, t.DeliveryTag = true, []byte("t")
			}
			if err := p.write(encode(frame.TypeAMQP, 0, &t, part)); err != nil {
				refusals.Add(1)
				return // not read any more, or closed
			}
			written.Add(maxPart)
		}
	})
	s.Logf("%d MiB were written, %d peers were stopped", written.Load()>>20, refusals.Load())
}

// unfinishedTransfers is the same by a client that may send: on each of many
// links a message whose end is never sent.
func unfinishedTransfers(s *scene) {
	const links = 450
	var written, stopped atomic.Int64
	together(scale(6, 16), 16, func(int) {
		p, err := s.connect(net.IPv4(127, 0, 0, 1))
		if err == nil {
			err = p.login(sendKey)
		}
		for h := uint32(0); h < links && err == nil; h++ {
			err = p.send(sendTo(h, "noise"))
		}
		for h := 0; h < links && err == nil; h++ {
			_, err = p.within(2 * time.Second).await(frame.CodeAttach)
		}
		part := make([]byte, maxPart)
		for h := uint32(0); h < links && err == nil; h++ {
			for n := 0; n < 4 && err == nil; n++ {
				t := frame.Transfer{Handle: h, More: true}
				if n == 0 {
					t.DeliveryID, t.HasDeliveryID, t.DeliveryTag = h, true, []byte{byte(h), byte(h >> 8)}
				}
				if err = p.within(2 * time.Second).write(encode(frame.TypeAMQP, 0, &t, part)); err == nil {
					written.Add(maxPart)
				}
			}
		}
		if err != nil {
			stopped.Add(1)
		}
	})
	s.Logf("%d MiB were written, %d connections were stopped", written.Load()>>20, stopped.Load())
}

// temporaryNodes is the part of number 12 about nodes that exist as long as a
// link: 8 MB wait in each of many, whose reader grants no credit.
func temporaryNodes(s *scene) {
	p := s.peer(sendKey)
	body := []byte(longText(1<<20 - 1<<10))
	relay := uint32(0)
	if _, err := p.attach(sendTo(relay, "")); err != nil {
		s.Fatal(err)
	}
	waiting := 0
	for i := range uint32(scale(80, 240)) {
		a := receiveFrom(1+i, "")
		a.Source.Dynamic = true
		answer, err := p.within(patience).attach(a)
		if err != nil {
			s.Logf("node %d: %v", i, err)
			break
		}
		for range 7 {
			d := message.Draft{To: answer.Source.Address, Body: body}
			err := p.within(3*time.Second).transfer(relay, 0, d.Encode(nil))
			if err == nil {
				err = p.settled()
			}
			if err != nil {
				s.Logf("node %d: %v", i, err)
				if refused(err) == "" {
					s.Logf("%d MiB wait", waiting>>20)
					return // it does not read any more
				}
				break
			}
			waiting += len(body)
		}
	}
	s.Logf("%d MiB wait", waiting>>20)
}

// repliesWithoutCredit is the part of number 12 about answers: messages are peeked at,
// and the answers wait for credit that never comes.
func repliesWithoutCredit(s *scene) {
	s.fill("peeked", 8, func(int) message.Draft { return message.Draft{Body: []byte(longText(200 << 10))} })
	d, err := s.peer(listenKey).talk("peeked/$management", 0)
	if err != nil {
		s.Fatal(err)
	}
	ask := request("com.microsoft:peek-message", codec.Map(
		codec.String("from-sequence-number"), codec.Long(0), codec.String("message-count"), codec.Int(100)))
	asked, answered := 0, 0
	for range scale(600, 1000) {
		err := d.within(3*time.Second).transfer(d.to, 0, ask)
		if err == nil {
			asked++
			if asked > 50 { // no more than the link has credit for are under way
				if err = d.settled(); err == nil {
					answered++
				}
			}
		}
		if err != nil {
			s.Logf("after %d requests: %v", asked, err)
			break
		}
	}
	s.Logf("%d requests, %d answers of 1.6 MB or more wait", asked, answered)
}

// headersAfterOptions is number 16 for connections whose first request no handler is for, and
// whose second has a header of many lines that never ends.
func headersAfterOptions(s *scene) {
	var header strings.Builder
	header.WriteString("GET /healthz HTTP/1.1\r\nHost: x\r\n")
	for i := 0; header.Len() < 62<<10; i++ {
		fmt.Fprintf(&header, "%x:\n", i)
	}
	var asked, refused atomic.Int64
	together(760, 250, func(i int) {
		nc, err := s.dialFrom(s.ctx, net.IPv4(127, 0, 3, byte(1+i/50)))
		if err != nil {
			return
		}
		s.Cleanup(func() { nc.Close() })
		if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
			return
		}
		fmt.Fprint(nc, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
		br := bufio.NewReader(nc)
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			return
		}
		resp.Body.Close()
		asked.Add(1)
		fmt.Fprint(nc, header.String())
		resp, err = http.ReadResponse(br, nil)
		if err != nil {
			return
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusRequestHeaderFieldsTooLarge || resp.StatusCode == http.StatusServiceUnavailable {
			refused.Add(1)
		}
	})
	s.Logf("%d asked, %d refused", asked.Load(), refused.Load())
	if n := asked.Load(); n == 0 || refused.Load() < n/2 {
		s.Errorf("of %d headers of 12,000 lines that never end %d are refused", n, refused.Load())
	}
}

// unauthenticatedHoldLittle is number 16: a thousand unauthenticated peers do what
// makes a broker use most memory, and read nothing.
func unauthenticatedHoldLittle(s *scene) {
	before, err := s.live()
	if err != nil {
		s.Fatal(err)
	}
	residentBefore, _ := s.resident()
	var in atomic.Int64
	together(1000, 250, func(i int) {
		p, err := s.connect(net.IPv4(127, 0, 2, byte(1+i/50)))
		if err != nil {
			return
		}
		if i%5 == 4 { // a header that never ends
			in.Add(1)
			fmt.Fprintf(p.within(200*time.Millisecond).nc, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: %s", longText(60<<10))
			return
		}
		if p.open("ANONYMOUS", nil) != nil {
			return
		}
		in.Add(1)
		p.within(200 * time.Millisecond)
		switch i % 5 {
		case 0: // refused links whose detach is never answered
			for h := range uint32(300) {
				a := receiveFrom(h, longText(200))
				a.Name = fmt.Sprint(h, longText(200))
				if p.send(a) != nil {
					return
				}
			}
		case 1: // answers that are never read
			for range 5_000 {
				if p.send(&frame.Flow{HasNextIncomingID: true, IncomingWindow: 1, OutgoingWindow: 1, Echo: true}) != nil {
					return
				}
			}
		case 2: // a request that never ends
			if _, err := p.attach(sendTo(0, "$cbs")); err != nil {
				return
			}
			for n := range 60 {
				t := frame.Transfer{More: true, HasDeliveryID: n == 0, DeliveryTag: []byte("t")}
				if p.write(encode(frame.TypeAMQP, 0, &t, make([]byte, maxPart))) != nil {
					return
				}
			}
		case 3: // sessions
			for ch := range uint16(1000) {
				if p.write(encode(frame.TypeAMQP, ch+1, &frame.Begin{IncomingWindow: 1, OutgoingWindow: 1}, nil)) != nil {
					return
				}
			}
		}
	})
	after, err := s.live()
	if err != nil {
		s.Fatal(err)
	}
	_, peak := s.resident()
	s.Logf("%d unauthenticated peers use %d MiB; resident memory grew by %d MiB", in.Load(), (after-before)>>20, (peak-residentBefore)>>20)
	if after-before > 100<<20 {
		s.Errorf("%d unauthenticated peers use %d MiB, want less than 100 MiB", in.Load(), (after-before)>>20)
	}
}

// live returns how much memory was in use at the last collection, with the
// stacks of goroutines. The collector begins the next when as much again has
// been allocated.
func (b *broker) live() (int64, error) {
	ctx, cancel := contextUntil(nil, time.Now().Add(patience))
	defer cancel()
	next, err := b.metric(ctx, "go_memstats_next_gc_bytes")
	if err != nil {
		return 0, err
	}
	stacks, err := b.metric(ctx, "go_memstats_stack_inuse_bytes")
	return int64(next)/2 + int64(stacks), err
}

// creditUnderflow is number 18: credit is taken back while deliveries wait for a
// window.
func creditUnderflow(s *scene) {
	const messages, credit = 300, 10
	s.fillSmall("credit", messages)
	p, err := s.connect(net.IPv4(127, 0, 0, 1))
	if err == nil {
		err = p.sasl("PLAIN", []byte("\x00"+listenKey.Name+"\x00"+listenKey.PrimaryKey))
	}
	if err == nil {
		err = p.begin(frame.Open{MaxFrameSize: 64 << 10, ChannelMax: math.MaxUint16}, 0) // a window of nothing
	}
	if err == nil {
		_, err = p.attach(receiveFrom(0, "credit"))
	}
	if err != nil {
		s.Fatal(err)
	}
	flow := func(f frame.Flow) {
		s.Helper()
		f.HasNextIncomingID, f.OutgoingWindow = true, 100
		if err := p.send(&f); err != nil {
			s.Fatal(err)
		}
	}
	flow(frame.Flow{HasHandle: true, HasDeliveryCount: true, LinkCredit: credit, HasLinkCredit: true})
	pause(s.ctx, 500*time.Millisecond) // for the deliveries to be on their way
	flow(frame.Flow{HasHandle: true, HasDeliveryCount: true, HasLinkCredit: true})
	flow(frame.Flow{IncomingWindow: 10_000})
	flow(frame.Flow{IncomingWindow: 10_000, HasHandle: true}) // nothing new about credit
	got := uint32(0)
	for {
		if _, err := p.within(time.Second).receive(); err != nil {
			break
		}
		err := p.send(&frame.Disposition{Role: frame.Receiver, First: got, Last: got, Settled: true, State: frame.Accepted()})
		if err != nil {
			s.Fatal(err)
		}
		got++
	}
	s.Logf("%d deliveries arrived", got)
	if got > credit {
		s.Errorf("%d deliveries arrived for a credit of %d", got, credit)
	}
}

// smallFrames is about a peer that accepts frames of 512 bytes: no frame of any
// kind is larger.
func smallFrames(s *scene) {
	p, err := s.connect(net.IPv4(127, 0, 0, 1))
	if err == nil {
		err = p.sasl("PLAIN", []byte("\x00"+root.Name+"\x00"+root.PrimaryKey))
	}
	if err == nil {
		err = p.begin(frame.Open{MaxFrameSize: frame.MinFrameSize, ChannelMax: math.MaxUint16}, math.MaxInt32)
	}
	if err != nil {
		s.Fatal(err)
	}
	// Each makes the broker say something long: its own words about a long address, and
	// what it repeats of an attach.
	_, err = p.within(patience).attach(receiveFrom(0, longText(300)))
	s.Logf("an entity that is not there: %v", err)
	a := receiveFrom(1, "frames")
	a.Name = longText(400)
	a.Source.Capabilities = []string{longText(200)}
	_, err = p.within(patience).attach(a)
	s.Logf("a link with a long name: %v", err)
	if p.largest > frame.MinFrameSize {
		s.Errorf("a frame of %d bytes was sent to a peer that accepts %d", p.largest, frame.MinFrameSize)
	}
}
