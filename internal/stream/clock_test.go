// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"encoding/hex"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

const day = 24 * time.Hour

// clockRig is a partition that is used under different clocks.
type clockRig struct {
	t   *testing.T
	p   *Partition
	out machine.Effects
	log [][]byte
	at  uint64
}

func newClockRig(t *testing.T) *clockRig {
	r := &clockRig{t: t, p: New()}
	r.p.Retain(Retention{For: 7 * day})
	r.p.Create(&r.out)
	r.keep()
	return r
}

// keep stores what was written.
func (r *clockRig) keep() {
	for _, rec := range r.out.Records() {
		r.log = append(r.log, append([]byte(nil), rec...))
	}
	r.out.Reset()
	if err := r.p.Check(); err != nil {
		r.t.Fatal(err)
	}
}

// put stores an event, and returns the time that it has.
func (r *clockRig) put(now time.Time) time.Time {
	r.t.Helper()
	body := func() machine.Ref {
		r.at += 100
		return machine.Ref{At: r.at, Size: 10}
	}
	if r.p.MustSeal(now, 10) {
		r.p.Seal(body(), &r.out)
	}
	r.p.Append(now, Arrival{Body: body(), Count: 1}, &r.out)
	r.keep()
	return r.p.Latest()
}

func (r *clockRig) tick(now time.Time, first SeqNo) {
	r.t.Helper()
	r.p.Tick(now, &r.out)
	r.keep()
	if r.p.First() != first {
		r.t.Errorf("at %v event %d is the oldest, want %d", now, r.p.First(), first)
	}
}

// restart replays the history.
func (r *clockRig) restart() {
	r.t.Helper()
	p := New()
	p.Retain(r.p.retain)
	for i, rec := range r.log {
		if err := p.Replay(rec, new(machine.Effects)); err != nil {
			r.t.Fatalf("record %d: %v", i, err)
		}
	}
	if p.Next() != r.p.Next() || p.First() != r.p.First() || p.Latest() != r.p.Latest() {
		r.t.Fatalf("a replay has events %d to %d, want %d to %d", p.First(), p.Next()-1, r.p.First(), r.p.Next()-1)
	}
	r.p = p
	again(r.t, p)
}

// A clock that was 400 days ahead leaves events of that time. Later ones have the right time,
// and neither they nor those are kept for longer than they should be.
func TestEventsOfAClockThatWasAhead(t *testing.T) {
	r, now := newClockRig(t), epochStart
	r.put(now)                    // 0
	r.put(now.Add(400 * day))     // 1
	r.put(now.Add(400*day + 1e9)) // 2
	r.restart()
	if got := r.put(now.Add(time.Hour)); !got.Equal(now.Add(time.Hour)) { // 3
		t.Errorf("an event at one hour is of %v", got.Sub(now))
	}
	r.put(now.Add(day)) // 4
	for range 2 {
		// Times are found, whatever there is between them; a block has its first event.
		for from, want := range map[time.Duration]SeqNo{0: 0, time.Minute: 0, 399 * day: 0, 401 * day: 5} {
			if seq, _ := r.p.Begin(FromTime(now.Add(from)), r.p.Next()); seq != want {
				t.Errorf("from %v on: event %d, want %d", from, seq, want)
			}
		}
		r.restart()
	}
	r.tick(now.Add(7*day-time.Second), 0)
	r.tick(now.Add(7*day+time.Hour-time.Second), 0)
	r.tick(now.Add(7*day+time.Hour), 4) // the wrong ones, and their block, go with the next
	if at, ok := r.p.NextDeadline(); !ok || at.After(now.Add(8*day+time.Hour)) {
		t.Errorf("the next deadline is %v", at.Sub(now))
	}
	r.tick(now.Add(8*day), 5)
}

// If nothing comes behind them, they are kept for the retention from when it is noticed.
func TestLastEventsOfAClockThatWasAhead(t *testing.T) {
	r, now := newClockRig(t), epochStart
	r.put(now.Add(400 * day))
	r.restart()
	r.tick(now, 0)
	if at, ok := r.p.NextDeadline(); !ok || at.After(now.Add(7*day+time.Hour)) {
		t.Errorf("the next deadline is %v", at.Sub(now))
	}
	r.tick(now.Add(6*day), 0)
	r.tick(now.Add(7*day), 1)
}

// A machine that began in 1970 has stored events before its clock was right. They do not
// expire at that moment.
func TestEventsOfAClockThatBeganIn1970(t *testing.T) {
	r, boot, now := newClockRig(t), time.UnixMilli(5000), epochStart
	r.put(boot)
	r.put(boot.Add(time.Minute))
	r.tick(boot.Add(time.Minute), 0)
	r.tick(now, 0)
	r.tick(now.Add(6*day), 0)
	r.put(now.Add(6 * day))
	r.tick(now.Add(7*day), 2)
	r.restart()
	r.tick(boot, 2) // it happens again: nothing expires while the clock is wrong
	r.tick(now.Add(7*day), 2)
	r.tick(now.Add(13*day-time.Second), 2)
	r.tick(now.Add(13*day), 3)
}

// A clock that goes back by a little does not take times back.
func TestTimesFollowTheClock(t *testing.T) {
	r, now := newClockRig(t), epochStart
	r.put(now)
	if got := r.put(now.Add(-time.Minute)); !got.Equal(now) {
		t.Errorf("a minute back: %v", got.Sub(now))
	}
	if got := r.put(now.Add(-61 * time.Second)); !got.Equal(now.Add(-61 * time.Second)) {
		t.Errorf("more than a minute back: %v", got.Sub(now))
	}
	r.restart()
}

// Times that go back are stored, and never otherwise.
func TestRecordsOfTimesThatGoBack(t *testing.T) {
	batches := []Batch{
		{First: 0, At: 1000, Body: machine.Ref{At: 5, Size: 1}, Count: 1},
		{First: 1, At: 400, Body: machine.Ref{At: 9, Size: 1}, Count: 1},
	}
	raw := appendBatches([]byte{indexVersion}, batches)
	if got, want := hex.EncodeToString(raw), "01020001e80705010001a8fbffffffffffffff010401"; got != want {
		t.Errorf("index %s, want %s", got, want)
	}
	block := blockOf(batches, machine.Ref{At: 20, Size: uint32(len(raw))})
	if got, err := DecodeIndex(raw, block, nil); err != nil || !slices.Equal(got, batches) {
		t.Errorf("%v, %v", got, err)
	}
	var out machine.Effects
	out.Begin(kindSeal)
	writeBlock(&out, &block, &Block{})
	out.End()
	rec := out.Records()[0]
	if got, want := hex.EncodeToString(rec), "040002e807a8fbffffffffffffff0105020f16"; got != want {
		t.Errorf("block %s, want %s", got, want)
	}
	r := machine.NewReader(rec[1:])
	if got := readBlock(&r, &Block{}); got != block || r.Bad() {
		t.Errorf("%+v, want %+v", got, block)
	}
}
