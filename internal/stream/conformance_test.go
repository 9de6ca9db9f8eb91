// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/machine/machinetest"
)

var epochStart = time.UnixMilli(1_700_000_000_000)

// describe is everything of a partition that a restart must find again.
func describe(p *Partition) string {
	s := fmt.Sprintf("next %d, last %d, bytes %d, %d", p.next, p.last, p.bytes, p.openBytes)
	for _, b := range p.blocks.list() {
		s += fmt.Sprintf("\nblock %+v", b)
	}
	for _, b := range p.open {
		s += fmt.Sprintf("\nbatch %+v", b)
	}
	s += fmt.Sprintf("\nassigned %d", p.producers.assigned)
	for _, x := range p.producers.list {
		s += fmt.Sprintf("\nproducer %d epoch %d last %d recent %v", x.id, x.epoch, x.last, x.recent)
	}
	return s
}

func TestConformance(t *testing.T) {
	var out machine.Effects
	var created *Partition
	now := epochStart
	command := func(rnd *rand.Rand, m machine.Machine, body func(int) machine.Ref) {
		p := m.(*Partition)
		if p != created {
			created, now = p, epochStart
			p.Retain(Retention{For: 20 * time.Second, Bytes: 2000})
			p.Create(&out)
			return
		}
		now = now.Add(time.Duration(rnd.IntN(1500)) * time.Millisecond)
		switch n := rnd.IntN(20); {
		case n < 12:
			a := Arrival{Body: body(1 + rnd.IntN(200)), Count: 1 + uint32(rnd.IntN(100))}
			if rnd.IntN(2) == 0 && len(p.producers.list) > 0 {
				x := p.producers.list[rnd.IntN(len(p.producers.list))]
				a.Producer = &Producer{ID: x.id, Epoch: x.epoch, Seq: advance(x.last, 1)}
				if _, again, err := p.Admit(*a.Producer, a.Count); again || err != nil {
					t.Fatalf("the next batch of a producer: again %t, %v", again, err)
				}
			}
			p.Append(now, a, &out)
		case n < 15:
			if len(p.open) > 0 {
				p.Seal(body(len(p.AppendIndex(nil))), &out)
			}
		case n < 17:
			asked := Producer{ID: int64(rnd.IntN(5)) - 1, Epoch: int16(rnd.IntN(4)) - 1, Seq: int32(rnd.IntN(1000)) - 1}
			_, _ = p.OpenProducer(asked, &out) // its epoch may be too low
		default:
			p.Tick(now, &out)
		}
	}
	machinetest.Run(t, machinetest.Subject{
		New:     func() machine.Machine { return New() },
		Out:     &out,
		Command: command,
		State:   func(m machine.Machine) string { return describe(m.(*Partition)) },
		Item:    2000,
	}, 20)
}

// A partition of 100 million batches costs 25 MB in memory: one block for 256 of them.
func TestABlockIsSmall(t *testing.T) {
	if n := reflect.TypeFor[Block]().Size(); n > 64 {
		t.Errorf("a block takes %d bytes", n)
	}
}
