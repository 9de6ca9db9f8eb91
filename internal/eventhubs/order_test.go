// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/message"
)

// narrowPeer is a receiver that counts what it was sent as the protocol wants it.
type narrowPeer struct {
	*rawPeer
	transfers uint32 // that have come in the session
	count     uint32 // delivery-count of the link
	partial   []byte
	next      int64 // number of the event that has to come
}

// got returns how many events have come.
func (p *narrowPeer) got() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

func (p *narrowPeer) take(code frame.Code, fields *codec.Reader, payload []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch code {
	case frame.CodeTransfer:
		var f frame.Transfer
		f.Decode(fields)
		p.transfers++
		if f.HasDeliveryID {
			p.count++
		}
		p.partial = append(p.partial, payload...)
		if f.More {
			return
		}
		m, err := message.Parse(p.partial)
		p.partial = nil
		if err != nil {
			p.t.Errorf("event %d: %v", p.next, err)
			return
		}
		v, _ := m.Annotation(names.AnnotationSequenceNumber)
		if n, _ := v.Int(); n != p.next {
			p.t.Errorf("event %d has come instead of %d", n, p.next)
		}
		p.next++
	case frame.CodeFlow:
		var f frame.Flow
		f.Decode(fields)
		if f.HasDeliveryCount {
			p.count = f.DeliveryCount
		}
	}
}

// attachFrom attaches the receiver behind what it has got.
func (p *narrowPeer) attachFrom(addr string) {
	p.t.Helper()
	p.mu.Lock()
	text := fmt.Sprintf("amqp.annotation.x-opt-offset > '%d'", p.next-1)
	p.count, p.partial = 0, nil
	p.mu.Unlock()
	filter, at := codec.BeginMap(nil)
	filter = codec.AppendSymbol(filter, names.SelectorFilter)
	filter = codec.AppendString(filter, text)
	p.say(&frame.Attach{
		Name: "r", Role: frame.Receiver, SenderSettleMode: frame.SenderMixed, Handle: 0,
		Source: &frame.Source{Address: addr, Filter: codec.EndMap(filter, at, 1)}, Target: &frame.Target{},
	})
}

// However narrow frames, windows and credit are, and however often the link is attached
// again, each event comes once and in order.
func TestEveryEventOnceAndInOrder(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t)
				rnd := rand.New(rand.NewPCG(seed, 1))
				const batches = 60
				total := int64(0)
				for range batches {
					n := 1 + rnd.IntN(20)
					b.fill(t, "h/Partitions/0", 1, n, rnd.IntN(2000))
					total += int64(n)
				}
				size := uint32(512)
				if seed%3 == 0 {
					size = 65536
				}
				p := &narrowPeer{rawPeer: b.rawWith(t, 3, size)}
				p.readsInto(p.take)
				p.attachFrom(partition(0))
				synctest.Wait()
				for round := 0; p.got() < total; round++ {
					if round > 10_000 {
						t.Fatalf("only %d of %d events have come", p.got(), total)
					}
					p.mu.Lock()
					f := &frame.Flow{
						HasNextIncomingID: true, NextIncomingID: p.transfers, IncomingWindow: uint32(rnd.IntN(8)), HasHandle: true,
						HasDeliveryCount: true, DeliveryCount: p.count, LinkCredit: uint32(rnd.IntN(10)), HasLinkCredit: true,
						Drain: rnd.IntN(5) == 0,
					}
					if rnd.IntN(10) == 0 {
						f.LinkCredit = 1<<32 - 1
					}
					p.mu.Unlock()
					p.say(f)
					if rnd.IntN(3) > 0 {
						synctest.Wait()
					}
					if rnd.IntN(40) == 0 {
						time.Sleep(2 * patience) // what was read is given up
					}
					if rnd.IntN(25) == 0 {
						p.say(&frame.Detach{Closed: true})
						synctest.Wait()
						p.attachFrom(partition(0))
						synctest.Wait()
					}
				}
				synctest.Wait()
				if got := p.got(); got != total {
					t.Errorf("%d events have come of %d", got, total)
				}
			})
		})
	}
}
