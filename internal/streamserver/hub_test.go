// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"errors"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/stream"
)

func TestEventsAreReadAsTheyWereAppended(t *testing.T) {
	r := newRig(t, Settings{Partitions: 2})
	var want [2]stream.SeqNo
	for i := range 700 { // more than two blocks, and more than one segment
		p := i % 2
		if got := r.append(p, 1+i%5, 300); got != want[p] {
			t.Fatalf("partition %d: first event %d, want %d", p, got, want[p])
		}
		want[p] += stream.SeqNo(1 + i%5)
	}
	for p := range 2 {
		x := r.reader(ReaderOptions{Partition: p, Group: "g"})
		if end := r.drain(x, 0); end != want[p] {
			t.Errorf("partition %d: read up to %d, want %d", p, end, want[p])
		}
	}
	if n := r.h.partitions[0].m.Bytes(); n < 350*300 {
		t.Errorf("%d bytes are retained", n)
	}
}

func TestEventsSurviveACrash(t *testing.T) {
	r := newRig(t, Settings{Partitions: 3})
	for i := range 900 {
		r.append(i%3, 2, 500)
		if i%200 == 77 {
			r.crash(uint64(i))
		}
	}
	if n := r.h.Snapshots(); n == 0 {
		t.Error("there was no snapshot")
	}
	for p := range 3 {
		x := r.reader(ReaderOptions{Partition: p})
		if end := r.drain(x, 0); end != 600 {
			t.Errorf("partition %d: read up to %d, want 600", p, end)
		}
	}
}

func TestReadersBeginWhereTheyAsk(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	began := r.now
	for range 600 { // event n is in batch n/3, at n/3 seconds
		r.append(0, 3, 50)
		r.now = r.now.Add(time.Second)
	}
	at := func(n int) time.Time { return began.Add(time.Duration(n) * time.Second) }
	for name, c := range map[string]struct {
		from stream.Start
		want stream.SeqNo
	}{
		"earliest":              {stream.Earliest(), 0},
		"latest":                {stream.Latest(), 1800},
		"sequence number":       {stream.FromSeq(1000), 1000},
		"after it":              {stream.AfterSeq(1000), 1001},
		"the end":               {stream.AfterSeq(1799), 1800},
		"before the beginning":  {stream.FromSeq(-5), 0},
		"time":                  {stream.FromTime(at(100)), 300},
		"after it, time":        {stream.AfterTime(at(100)), 303},
		"between two times":     {stream.FromTime(at(100).Add(time.Microsecond)), 303},
		"after, between times":  {stream.AfterTime(at(100).Add(time.Millisecond)), 303},
		"time in the open one":  {stream.FromTime(at(590)), 1770},
		"time of the last one":  {stream.FromTime(at(599)), 1797},
		"time that is to come":  {stream.FromTime(at(5000)), 1800},
		"time before all":       {stream.FromTime(at(-50)), 0},
		"time before time":      {stream.FromTime(time.Unix(-100, 0)), 0},
		"exclusive time of old": {stream.AfterTime(at(-1)), 0},
	} {
		x := r.reader(ReaderOptions{From: c.from})
		r.drain(x, c.want)
		x.Close()
		r.step()
		if t.Failed() {
			t.Fatal(name)
		}
	}
	_, err := run(r, func() (*Reader, error) {
		return r.h.OpenReader(t.Context(), ReaderOptions{From: stream.FromSeq(1801)})
	})
	if pos, ok := errors.AsType[*PositionError](err); !ok || pos.Asked != 1801 || pos.Last != 1799 {
		t.Errorf("behind the end: %v", err)
	}
}

func TestReadersAtTheEndAreWoken(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	x := r.reader(ReaderOptions{From: stream.Latest()})
	if got, err := r.next(x, 100); len(got) > 0 || err != nil {
		t.Fatalf("%v, %v of an empty partition", got, err)
	}
	acked := false
	r.h.Append(&Append{Raw: []byte("one"), Count: 1, Done: func(stream.SeqNo, error) { acked = true }})
	r.step()
	if got, _ := r.next(x, 100); acked || len(got) > 0 {
		t.Fatalf("acknowledged %t, read %d batches before the event was durable", acked, len(got))
	}
	r.commit()
	r.step()
	got, err := r.next(x, 100)
	if err != nil || len(got) != 1 || string(got[0].Raw) != "one" || !acked {
		t.Fatalf("%v, %v, acknowledged %t", got, err, acked)
	}
	if last, at := x.End(); last != 0 || !at.Equal(r.now) {
		t.Errorf("the end is event %d at %v", last, at)
	}
}

// A batch behind the last that is durable is not read, wherever the one before it is.
func TestOnlyWhatIsDurableIsRead(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	r.append(0, 1, 100)
	for _, seal := range []bool{false, true} {
		x := r.reader(ReaderOptions{})
		begin := r.h.partitions[0].end
		n := 1
		if seal {
			n = 300
		}
		for range n {
			r.h.Append(&Append{Raw: make([]byte, 100), Count: 1, Done: func(stream.SeqNo, error) {}})
		}
		r.step()
		if _, sealed, _ := r.h.partitions[0].m.Find(0); sealed != seal {
			t.Fatalf("sealed %t", sealed)
		}
		if got, err := r.next(x, 1<<20); err != nil || len(got) != int(begin) {
			t.Errorf("%d batches of %d, %v", len(got), begin, err)
		}
		r.settle()
		if got, err := r.next(x, 1<<20); err != nil || len(got) == 0 {
			t.Errorf("%d batches, %v", len(got), err)
		}
		x.Close()
	}
}

func TestWaitHoldsNoBodies(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	x := r.reader(ReaderOptions{})
	r.append(0, 3, 1000)
	if _, err := run(r, func() (int, error) { return 0, x.Wait(t.Context()) }); err != nil {
		t.Fatal(err)
	}
	if x.fetch.buffers != nil || x.Position() != 0 {
		t.Errorf("buffers %v, position %d", x.fetch.buffers, x.Position())
	}
	before := r.h.Posted()
	got, err := x.Next(t.Context(), 1<<20) // would not return if it waited for the engine
	if err != nil || len(got) != 1 || x.Position() != 3 || r.h.Posted() != before {
		t.Errorf("%v, %v, position %d", got, err, x.Position())
	}
	if x.fetch.buffers == nil {
		t.Error("it reads without buffers")
	}
	if got, err := r.next(x, 100); len(got) > 0 || err != nil || x.fetch.buffers != nil {
		t.Errorf("%v, %v, buffers %v of a reader that waits", got, err, x.fetch.buffers)
	}
}
