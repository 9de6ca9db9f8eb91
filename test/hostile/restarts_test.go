// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/message"
)

// restartsWithoutEnd has a member of a group, which may only read, join with another run
// again and again: each time it gets all partitions of the hub anew, which is 200 KB of
// records for 600 bytes. Somebody sends an event from time to time, which keeps the records
// around it on the disk.
func restartsWithoutEnd(s *scene) {
	s.hub("restarted", wide, 1, "")
	most := int64(256 << 20) // what a hub may write at once, some seconds, and files that are ready
	before, lasting := s.stored(), time.Duration(scale(10, 40))*time.Second
	end := time.Now().Add(lasting)
	var joined, refusals atomic.Int64
	storm := func(c int) {
		p, err := s.connect(net.IPv4(127, 0, 0, 1))
		if err != nil || p.within(patience).login(listenKey) != nil {
			return
		}
		for k := 0; time.Now().Before(end); k++ {
			a := memberOf(uint32(k%200), "restarted", "g0", strings.Repeat("i", 256), 0)
			a.Name = fmt.Sprint("run ", c, " ", k)
			a.Properties = codec.AppendValue(nil, codec.Map(
				codec.Symbol(names.Member), codec.String(strings.Repeat("i", 256)), codec.Symbol(names.MemberRun), codec.String(a.Name)))
			_, err := p.within(patience).attach(a)
			switch {
			case err == nil:
				joined.Add(1)
				err = p.send(&frame.Detach{Handle: a.Handle, Closed: true})
			case refused(err) != "":
				refusals.Add(1)
				continue
			}
			if err != nil {
				return // it has been cut off, which it may be
			}
		}
	}
	together(9, 9, func(c int) {
		if c < 8 {
			storm(c)
			return
		}
		p, d := s.peer(root), message.Draft{Body: []byte("hello")}
		_, err := p.within(patience).attach(sendTo(0, "restarted"))
		for err == nil && time.Now().Before(end) {
			if err = p.within(patience).transfer(0, 0, d.Encode(nil)); err == nil {
				err = p.settled()
			}
			pause(s.ctx, 100*time.Millisecond)
		}
		if err != nil {
			s.Errorf("an honest sender: %v", err)
		}
	})
	grown := s.stored() - before
	s.Logf("%d joins, %d refused or replaced: %d MB are written", joined.Load(), refusals.Load(), grown>>20)
	if joined.Load() == 0 {
		s.Error("the member has never joined")
	}
	if grown > most {
		s.Errorf("%d MB are written by a member in %v, want at most %d", grown>>20, lasting, most>>20)
	}
}
