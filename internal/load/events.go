// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/objective"
)

// Settings of a run on an event hub that differ from those on a queue: batches are
// large, so few of them are under way.
const (
	hubBatch  = 100
	hubWindow = 32
	hubCredit = 10_000
	// batchCredit is how many deliveries of batches a receiver is ready to hold. Each has
	// up to a frame of events.
	batchCredit = 64
)

// newEventTemplate prepares events, which have no header.
func newEventTemplate(run uint64, k kind, size int) *messageTemplate {
	d := message.Draft{Body: newBody(run, k, size)}
	return &messageTemplate{size: size, levels: [][]byte{d.Encode(nil)}}
}

// partitionReader is a link that reads one partition.
type partitionReader struct {
	left    uint32 // credit the broker has left
	count   uint32 // deliveries received
	partial []byte // the incomplete delivery, if it consists of several frames
}

// eventReader is a connection that reads partitions of an event hub. Events are settled
// when they come.
type eventReader struct {
	*conn
	run    *run
	credit uint32
	links  []partitionReader // by their handles
	out    *atomic.Uint64    // counts events of this run
	behind bool              // it reads what is old, and nothing is measured
	scan   message.EventScanner

	known   uint64 // events of this run since the last report
	foreign uint64 // events of other runs
	latency objective.Histogram
}

// newEventReader attaches to those partitions whose turn it is among all connections.
func (r *run) newEventReader(c *conn, credit, turn int) (*eventReader, error) {
	in := &eventReader{conn: c, run: r, credit: uint32(credit), out: &r.out}
	from := "@latest"
	if r.cfg.Mode == Receive || r.cfg.Backlog > 0 && r.cfg.Behind == 0 {
		from = "-1"
	}
	return in, in.attach(from, turn, r.cfg.Receivers)
}

// newReaderBehind attaches to all partitions at their oldest events.
func (r *run) newReaderBehind(c *conn, credit int) (*eventReader, error) {
	in := &eventReader{conn: c, run: r, credit: uint32(credit), out: &r.behind, behind: true}
	return in, in.attach("-1", 0, 1)
}

// attach attaches to every step-th partition.
func (in *eventReader) attach(from string, first, step int) error {
	r, c := in.run, in.conn
	for p := first; p < r.cfg.Partitions; p += step {
		node := fmt.Sprintf("%s/ConsumerGroups/$Default/Partitions/%d", r.cfg.Hub, p)
		attach := &frame.Attach{
			Name: r.linkName("reader"), Handle: uint32(len(in.links)), Role: frame.Receiver,
			SenderSettleMode: frame.SenderMixed,
			Source:           &frame.Source{Address: node, Filter: startFilter(from)},
			Target:           &frame.Target{Address: node},
		}
		if !r.cfg.Single {
			b, at := codec.BeginMap(nil)
			b = codec.AppendBool(codec.AppendSymbol(b, names.Batches), true)
			attach.Properties = codec.EndMap(b, at, 1)
		}
		c.send(attach)
		in.links = append(in.links, partitionReader{})
		if err := c.flush(); err != nil {
			return err
		}
		if err := c.awaitAttach(); err != nil {
			return err
		}
	}
	return nil
}

// startFilter is the filter that makes a reader start behind an offset.
func startFilter(offset string) []byte {
	const name = "apache.org:selector-filter:string"
	b, at := codec.BeginMap(nil)
	b = codec.AppendSymbol(b, name)
	b = codec.AppendSymbol(append(b, 0), name) // 0 begins a described value
	b = codec.AppendString(b, "amqp.annotation.x-opt-offset > '"+offset+"'")
	return codec.EndMap(b, at, 1)
}

// work receives until the connection's context ends, which is why it returns.
func (in *eventReader) work() error { return in.loop(in.handle, in.topUp) }

// topUp grants credit on the links that have used up half of it.
func (in *eventReader) topUp() {
	for i := range in.links {
		l := &in.links[i]
		if l.left > in.credit/2 {
			continue
		}
		l.left = in.credit
		in.grant(uint32(i), l.count, in.credit)
	}
}

// handle takes what the broker sent.
func (in *eventReader) handle() error {
	now := in.run.since()
	return in.frames(func(fields *codec.Reader, payload []byte) { in.transfer(fields, payload, now) }, in.counted)
}

// counted reports what was received since the last report.
func (in *eventReader) counted() {
	in.out.Add(in.known)
	in.known = 0
}

func (in *eventReader) transfer(fields *codec.Reader, payload []byte, now time.Duration) {
	var t frame.Transfer
	if t.Decode(fields); fields.Err() != nil || int(t.Handle) >= len(in.links) {
		return
	}
	in.nextIn++
	l := &in.links[t.Handle]
	if len(l.partial) == 0 {
		l.count++
		l.left--
	}
	if t.More || len(l.partial) > 0 {
		l.partial = append(l.partial, payload...)
		if t.More {
			return
		}
		payload = l.partial
	}
	if in.run.cfg.Single {
		in.event(payload, now)
	} else {
		in.batches(payload, now)
	}
	l.partial = l.partial[:0]
}

// batches takes a delivery of batches apart.
func (in *eventReader) batches(payload []byte, now time.Duration) {
	for len(payload) > 0 {
		b, rest, err := message.NextEventBatch(payload)
		if err != nil {
			in.foreign++
			return
		}
		in.scan.Open(b.Stored)
		for n := 0; in.scan.Next(); n++ {
			if n >= b.Skip {
				in.event(in.scan.Event(), now)
			}
		}
		payload = rest
	}
}

// event counts an event.
func (in *eventReader) event(raw []byte, now time.Duration) {
	k, sent, ok := readBody(raw, in.run.number, in.run.cfg.Size)
	if !ok {
		in.foreign++
		return
	}
	if k == kindPlain && !in.behind {
		in.latency.Record(now - sent)
	}
	in.known++
}

func (in *eventReader) measured() (*objective.Histogram, uint64) { return &in.latency, in.foreign }
