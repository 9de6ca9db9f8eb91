// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"io"
	"math"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// flowStorms has peers with many receivers of one queue say again and again how much credit
// they give: some forty bytes each.
func flowStorms(s *scene) { s.flows(1, false) }

// drainStorms has them drain as well.
func drainStorms(s *scene) { s.flows(scale(400, 1000), true) }

func (s *scene) flows(receivers int, drain bool) {
	const queue = "24-flows"
	s.define(http.MethodPut, "/queues/"+queue, "{}")
	s.Cleanup(func() { _, _, _ = s.call(s.ctx, root, http.MethodDelete, "/api/v1/queues/"+queue, nil) })
	until := time.Now().Add(time.Duration(scale(6, 30)) * time.Second)
	var written atomic.Int64
	together(4, 4, func(i int) {
		p, err := s.connect(net.IPv4(127, 0, 2, byte(1+i)))
		if err == nil {
			err = p.login(listenKey)
		}
		for h := uint32(0); h < uint32(receivers) && err == nil; h++ {
			_, err = p.within(patience).attach(receiveFrom(h, queue))
		}
		if err != nil {
			s.Errorf("peer %d: %v", i, err)
			return
		}
		var burst []byte
		for n := range uint32(1000) {
			burst = append(burst, encode(frame.TypeAMQP, 0, &frame.Flow{HasNextIncomingID: true, IncomingWindow: math.MaxInt32, OutgoingWindow: 1,
				HasHandle: true, HasDeliveryCount: true, LinkCredit: 1 + n%2, HasLinkCredit: true, Drain: drain}, nil)...)
		}
		go func() { _, _ = io.Copy(io.Discard, p.in) }() // ends with the connection
		p.nc.SetDeadline(until)
		for err == nil && time.Now().Before(until) {
			if err = p.write(burst); err == nil {
				written.Add(1000)
			}
		}
		p.nc.Close()
	})
	s.Logf("%d flows", written.Load())
}
