// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// wireScenes is the attacks by peers that speak AMQP: frames, ranges, replies without credit, names.
var wireScenes = []attack{
	{"24.01_ranges_without_login", rangesWithoutLogin},
	{"24.13_empty_websocket_frames", emptyWebSocketFrames},
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
