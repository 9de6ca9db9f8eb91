// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"testing"

	"github.com/triagemq/triagemq/internal/machine"
)

// Batches whose block is not known, since the record of it is lost, are found one by one.
func TestALostSealLosesNothing(t *testing.T) {
	var out machine.Effects
	p := New()
	p.Create(&out)
	at := uint64(1)
	body := func() machine.Ref {
		at += 100
		return machine.Ref{At: at, Size: 10}
	}
	lost := -1
	for block := range 3 {
		for range 4 {
			p.Append(epochStart, Arrival{Body: body(), Count: 2}, &out)
		}
		if block == 0 {
			lost = out.Count()
		}
		p.Seal(body(), &out)
	}
	p.Append(epochStart, Arrival{Body: body(), Count: 2}, &out)

	var effects machine.Effects
	again := New()
	for i, rec := range out.Records() {
		if i == lost {
			again.Lost()
			continue
		}
		if err := again.Replay(rec, &effects); err != nil {
			t.Fatal(err)
		}
	}
	again.EndReplay()
	if err := again.Check(); err != nil {
		t.Fatal(err)
	}
	if again.Missing() > 0 || again.First() != 0 || again.Next() != p.Next() || again.Bytes() != p.Bytes() {
		t.Errorf("%d events are missing of %d to %d, %d bytes", again.Missing(), again.First(), again.Next()-1, again.Bytes())
	}
	for seq := SeqNo(0); seq < 8; seq += 2 {
		block, sealed, _ := again.Find(seq)
		if b, alone := block.Alone(); !sealed || !alone || b.First != seq || b.Count != 2 || b.Body.Size != 10 {
			t.Errorf("event %d is in %+v", seq, block)
		}
	}
	if block, sealed, _ := again.Find(8); !sealed || block.First != 8 || block.End != 16 {
		t.Errorf("event 8 is in %+v", block)
	}
}
