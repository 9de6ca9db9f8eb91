// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"net"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// wireScenes is the attacks by peers that speak AMQP: frames, ranges, replies without credit, names.
var wireScenes = []attack{
	{"24.01_ranges_without_login", rangesWithoutLogin},
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
