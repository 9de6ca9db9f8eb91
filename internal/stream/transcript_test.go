// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/script"
)

func TestTranscripts(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(t *testing.T) func(script.Command) string {
		s := &stage{t: t, now: epochStart, p: New(), place: 1}
		s.p.Create(&s.out)
		return s.run
	})
}

// stage is the partition of a transcript.
type stage struct {
	t     *testing.T
	now   time.Time
	p     *Partition
	out   machine.Effects
	log   [][]byte
	snap  machine.Snapshot
	cut   int    // where the snapshot began in log
	place uint64 // of the next body
}

func (s *stage) run(c script.Command) string {
	reply := s.command(c)
	for _, rec := range s.out.Records() {
		s.log = append(s.log, slices.Clone(rec))
	}
	s.out.Reset()
	if err := s.p.Check(); err != nil {
		s.t.Fatalf("line %d: %v", c.Line, err)
	}
	return reply
}

func (s *stage) body(size int) machine.Ref {
	ref := machine.Ref{At: s.place, Size: uint32(size)}
	s.place += uint64(size)
	return ref
}

func (s *stage) command(c script.Command) string {
	switch c.Name {
	case "retain":
		s.p.Retain(Retention{For: c.Duration("for", 0), Bytes: uint64(c.Int("bytes", 0))})
		s.p.Tick(s.now, &s.out)
		return ""
	case "wait":
		d, err := time.ParseDuration(c.Word(0))
		if err != nil {
			s.t.Fatal(err)
		}
		s.now = s.now.Add(d)
		if at, ok := s.p.NextDeadline(); ok && !at.After(s.now) {
			s.p.Tick(s.now, &s.out)
		}
		return ""
	case "append":
		return s.append(c)
	case "seal":
		index := s.p.AppendIndex(nil)
		s.p.Seal(s.body(len(index)), &s.out)
		return ""
	case "producer":
		got, err := s.p.OpenProducer(Producer{int64(c.Int("id", -1)), int16(c.Int("epoch", -1)), int32(c.Int("seq", -1))}, &s.out)
		if err != nil {
			return err.Error() + "\n"
		}
		return fmt.Sprintf("id %d, epoch %d, published up to %d\n", got.ID, got.Epoch, got.Seq)
	case "from":
		return s.from(c)
	case "show":
		return s.show()
	case "snapshot": // begins one, or takes a step
		if s.snap == nil {
			s.snap, s.cut = s.p.Snapshot(), len(s.log)
		}
		done := s.snap.Step(&machine.Budget{Items: c.Int("items", 1), Bytes: 1 << 20}, nil, &s.out)
		return fmt.Sprintf("%d records, done %t\n", s.out.Count(), done)
	case "restart":
		return s.restart(s.log[s.cut:])
	}
	s.t.Fatalf("line %d: unknown command %s", c.Line, c.Name)
	return ""
}

func (s *stage) append(c script.Command) string {
	a := Arrival{Count: uint32(c.Int("events", 1))}
	if c.Has("id") {
		a.Producer = &Producer{int64(c.Int("id", 0)), int16(c.Int("epoch", 0)), int32(c.Int("seq", 0))}
		first, again, err := s.p.Admit(*a.Producer, a.Count)
		if err != nil {
			return err.Error() + "\n"
		}
		if again {
			return fmt.Sprintf("again %d\n", first)
		}
	}
	a.Body = s.body(c.Int("size", 10))
	return fmt.Sprintf("event %d\n", s.p.Append(s.now, a, &s.out))
}

func (s *stage) from(c script.Command) string {
	start := Earliest()
	at := func() time.Time { return epochStart.Add(c.Duration("time", c.Duration("after-time", 0))) }
	switch {
	case c.Text("at", "") == "latest":
		start = Latest()
	case c.Has("seq"):
		start = FromSeq(SeqNo(c.Int("seq", 0)))
	case c.Has("after"):
		start = AfterSeq(SeqNo(c.Int("after", 0)))
	case c.Has("time"):
		start = FromTime(at())
	case c.Has("after-time"):
		start = AfterTime(at())
	}
	from, since := s.p.Begin(start, s.p.Next())
	text := fmt.Sprintf("event %d", from)
	if since > 0 {
		text += fmt.Sprintf(", since %v", time.UnixMilli(since).Sub(epochStart))
	}
	block, sealed, open := s.p.Find(from)
	switch {
	case sealed:
		text += fmt.Sprintf(": in the block of %d to %d", block.First, block.End-1)
	case len(open) > 0:
		text += fmt.Sprintf(": in the batch of %d to %d", open[0].First, open[0].End()-1)
	default:
		text += ": yet to come"
	}
	return text + "\n"
}

func (s *stage) show() string {
	var b strings.Builder
	fmt.Fprintf(&b, "events %d to %d, %d bytes\n", s.p.First(), s.p.Next()-1, s.p.Bytes())
	since := func(ms int64) time.Duration { return time.UnixMilli(ms).Sub(epochStart) }
	for _, x := range s.p.blocks.list() {
		fmt.Fprintf(&b, "block %d to %d, %v to %v, %d bytes\n", x.First, x.End-1, since(x.From), since(x.To), x.Bodies.Size)
	}
	for _, x := range s.p.open {
		fmt.Fprintf(&b, "batch %d to %d, %v, %d bytes\n", x.First, x.End()-1, since(x.At), x.Body.Size)
	}
	return b.String()
}

// restart goes on with the partition that a replay makes.
func (s *stage) restart(log [][]byte) string {
	p := New()
	for i, rec := range log {
		if err := p.Replay(rec, new(machine.Effects)); err != nil {
			return fmt.Sprintf("record %d: %v\n", i, err)
		}
	}
	if !p.Restored() {
		return "the snapshot has no end\n"
	}
	if got, want := describe(p), describe(s.p); got != want {
		return fmt.Sprintf("got  %s\nwant %s\n", got, want)
	}
	p.Retain(s.p.retain)
	s.p = p
	return fmt.Sprintf("%d records\n", len(log))
}
