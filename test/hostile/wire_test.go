// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/message"
)

// wireScenes is the attacks by peers that speak AMQP: frames, ranges, replies without credit, names.
var wireScenes = []attack{
	{"24.01_ranges_without_login", rangesWithoutLogin},
	{"24.03_peek_without_credit", peekWithoutCredit},
	{"24.05_long_names", longNames},
	{"24.13_empty_websocket_frames", emptyWebSocketFrames},
	{"24.30_padded_batches", paddedBatches},
	{"24.31_batches_of_empty_messages", batchesOfEmptyMessages},
	{"24.30_batches_for_temporary_nodes", pinnedByTemporaryNode},
	{"24.33_refused_edits", refusedEdits},
	{"24.40_tokens_in_large_requests", tokensInLargeRequests},
	{"24.41_many_links", manyLinksForReplies},
	{"24.34_flow_storms", flowStorms},
	{"24.34_drain_storms", drainStorms},
}

// rangesWithoutLogin has unauthenticated peers name ranges of deliveries that are not
// there: a few dozen bytes each, and up to two thousand million ids.
func rangesWithoutLogin(s *scene) {
	ranges := [][2]uint32{{1 << 20, 1<<31 + 5}, {0, 1<<31 - 1}, {1, 1 << 31}, {1<<32 - 1, 1<<31 - 2}, {5, 4}, {0, 1<<32 - 1}}
	together(scale(8, 64), 64, func(i int) {
		p, err := s.connect(net.IPv4(127, 0, 2, byte(1+i)))
		if err == nil {
			err = p.open("ANONYMOUS", nil)
		}
		if err != nil {
			s.Errorf("peer %d: %v", i, err)
			return
		}
		var frames []byte
		for n := range 256 {
			r := ranges[n%len(ranges)]
			frames = append(frames, encode(frame.TypeAMQP, 0, &frame.Disposition{
				Role: frame.Receiver, First: r[0], Last: r[1], Settled: n%2 == 0, State: frame.Accepted()}, nil)...)
		}
		p.within(5 * time.Second)
		if err := p.write(frames); err != nil {
			s.Errorf("peer %d: %v", i, err)
			return
		}
		// What comes behind them is answered at once.
		if err := p.send(&frame.Flow{HasNextIncomingID: true, IncomingWindow: 1, OutgoingWindow: 1, Echo: true}); err != nil {
			s.Errorf("peer %d: %v", i, err)
			return
		}
		if _, err := p.await(frame.CodeFlow); err != nil {
			s.Errorf("peer %d: %d dispositions are worked on for more than 5 s: %v", i, 256, err)
		}
	})
}

// emptyWebSocketFrames has peers open WebSockets and send pieces of messages without
// content, and pings: six bytes each.
func emptyWebSocketFrames(s *scene) {
	const (
		head = "GET /$servicebus/websocket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"
		first, piece, ping = "\x02\x80\x00\x00\x00\x00", "\x00\x80\x00\x00\x00\x00", "\x89\x80\x00\x00\x00\x00"
	)
	each := scale(200_000, 35_000_000/8)
	together(8, 8, func(i int) {
		p, err := s.connect(net.IPv4(127, 0, 2, byte(1+i)))
		if err == nil {
			err = p.write([]byte(head))
		}
		if err != nil {
			s.Errorf("peer %d: %v", i, err)
			return
		}
		if res, err := http.ReadResponse(p.in, nil); err != nil || res.StatusCode != http.StatusSwitchingProtocols {
			s.Errorf("peer %d: %v, %v", i, res, err)
			return
		}
		frame := piece
		if i%2 == 1 {
			frame = ping
		}
		burst := []byte(strings.Repeat(frame, 10_000))
		err = p.write([]byte(first))
		for sent := 0; sent < each && err == nil; sent += 10_000 {
			err = p.write(burst)
		}
		p.within(5 * time.Second)
		_, err = io.Copy(io.Discard, p.in)
		if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
			s.Errorf("peer %d: the connection is still there after %d frames without content", i, each)
		}
	})
}

// peekWithoutCredit has connections of one key ask for many messages by peek and by number,
// and give the replies no credit.
func peekWithoutCredit(s *scene) {
	const queue, size = "24-peeked", 250 << 10
	s.define(http.MethodPut, "/queues/"+queue, "{}")
	s.fill(queue, 49, func(int) message.Draft { return message.Draft{Body: []byte(longText(size))} })
	defer s.define(http.MethodDelete, "/queues/"+queue, "")
	ask := request("com.microsoft:peek-message", codec.Map(
		codec.String("from-sequence-number"), codec.Long(0), codec.String("message-count"), codec.Int(1000)))
	until := time.Now().Add(time.Duration(scale(2, 30)) * time.Second)
	var asked atomic.Int64
	together(20, 20, func(i int) {
		for time.Now().Before(until) {
			p, err := s.connect(net.IPv4(127, 0, 2, byte(1+i)))
			if err == nil {
				err = p.login(listenKey)
			}
			if err != nil {
				continue // there is no memory for it
			}
			d, err := p.talk(queue+"/$management", 0)
			for err == nil && time.Now().Before(until) {
				if err = d.within(time.Second).transfer(d.to, 0, ask); err == nil {
					asked.Add(1)
				}
				if err == nil && asked.Load() > 20*50 { // no more than the links have credit for
					err = d.settled()
				}
			}
			p.nc.Close()
		}
	})
	_, peak := s.resident()
	s.Logf("%d requests; at most %d MiB resident", asked.Load(), peak>>20)
}

// longNames has peers give links and themselves names as long as a frame, and asks for the
// list of connections.
func longNames(s *scene) {
	name := strings.Repeat("<", 60<<10)
	peers, attached := scale(4, 14), 0
	for i := range peers {
		p, err := s.connect(net.IPv4(127, 0, 2, byte(1+i)))
		if err == nil {
			err = p.sasl("PLAIN", []byte("\x00"+listenKey.Name+"\x00"+listenKey.PrimaryKey))
		}
		if err == nil {
			err = p.write(frame.AppendProtocol(nil, frame.ProtocolAMQP),
				encode(frame.TypeAMQP, 0, &frame.Open{ContainerID: name[:3<<10], MaxFrameSize: 64 << 10, ChannelMax: 10}, nil),
				encode(frame.TypeAMQP, 0, &frame.Begin{IncomingWindow: 1000, OutgoingWindow: 1000, HandleMax: 1023}, nil))
		}
		if err == nil {
			err = p.protocol()
		}
		if err == nil {
			_, err = p.await(frame.CodeBegin)
		}
		for h := uint32(0); h < 100 && err == nil; h++ {
			a := receiveFrom(h, "credit")
			a.Name = fmt.Sprint(h, name)
			if _, err = p.within(5 * time.Second).attach(a); err == nil {
				attached++
			} else if refused(err) == "amqp:invalid-field" {
				err = nil
			}
		}
		if err != nil {
			s.Errorf("peer %d: %v", i, err)
		}
	}
	if attached > 0 {
		s.Errorf("%d links have names of 60 KB", attached)
	}
	list, err := s.get(s.ctx, root, "/api/v1/connections")
	if err != nil || len(list) > 1<<20 {
		s.Errorf("the list of connections has %d bytes, %v", len(list), err)
	}
}
