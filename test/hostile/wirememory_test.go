// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/message"
)

// batchOfEmpty is a batch of n messages without anything, five bytes each.
func batchOfEmpty(n int) (b []byte) {
	for range n {
		b = append(b, "\x00\x53\x75\xa0\x00"...)
	}
	return b
}

// padded is a batch of one small message in an envelope that is nearly as large as a
// message may be.
func padded(size int) []byte {
	d := message.Draft{Body: []byte("small")}
	b := message.AppendBatch(nil, d.Message())
	b = codec.AppendDescriptor(b, 0x78) // footer
	b, at := codec.BeginMap(b)
	b = codec.AppendBinary(codec.AppendSymbol(b, "x"), make([]byte, size))
	return codec.EndMap(b, at, 1)
}

// paddedBatches sends small messages in envelopes of a megabyte. What the broker keeps of
// such a batch is the message.
func paddedBatches(s *scene) {
	const queue = "24-padded"
	s.define(http.MethodPut, "/queues/"+queue, "{}")
	s.Cleanup(func() { _, _, _ = s.call(s.ctx, root, http.MethodDelete, "/api/v1/queues/"+queue, nil) })
	batch := padded(200 << 10)
	var accepted atomic.Int64
	together(4, 4, func(int) {
		n, err := s.flood(sendKey, queue, message.FormatBatch, scale(1000, 10_000), func(int) []byte { return batch })
		if err != nil {
			s.Logf("%v", err)
		}
		accepted.Add(int64(n))
	})
	now, peak := s.resident()
	s.Logf("%d messages were accepted; %d MiB resident, at most %d MiB", accepted.Load(), now>>20, peak>>20)
}

// batchesOfEmptyMessages sends batches of 4,500 messages of five bytes, as many as there is
// credit for, without waiting for an answer.
func batchesOfEmptyMessages(s *scene) {
	const queue = "24-empty"
	s.define(http.MethodPut, "/queues/"+queue, "{}")
	s.Cleanup(func() { _, _, _ = s.call(s.ctx, root, http.MethodDelete, "/api/v1/queues/"+queue, nil) })
	batch := batchOfEmpty(4500)
	until := time.Now().Add(time.Duration(scale(3, 30)) * time.Second)
	together(8, 8, func(i int) {
		for time.Now().Before(until) && !s.Dead() {
			p, err := s.connect(net.IPv4(127, 0, 2, byte(1+i)))
			if err != nil {
				continue
			}
			err = p.login(sendKey)
			const links = 4
			for h := uint32(0); h < links && err == nil; h++ {
				_, err = p.attach(sendTo(h, queue))
			}
			for n := 0; n < links*1000 && err == nil && time.Now().Before(until); n++ {
				err = p.within(time.Second).transfer(uint32(n%links), uint32(message.FormatBatch), batch)
			}
			p.nc.Close() // it is not read from any more, or the time is up
		}
	})
	now, peak := s.resident()
	s.Logf("%d MiB resident, at most %d MiB", now>>20, peak>>20)
}

// pinnedByTemporaryNode sends batches of a small message and one that the reader of a
// temporary node does not take.
func pinnedByTemporaryNode(s *scene) {
	r := s.peer(listenKey)
	answer, err := r.attach(&frame.Attach{Name: "node", Handle: 0, Role: frame.Receiver,
		Source: &frame.Source{Dynamic: true}, Target: &frame.Target{}, MaxMessageSize: 1000})
	if err != nil {
		s.Fatal(err)
	}
	small, large := message.Draft{Body: []byte("small")}, message.Draft{Body: make([]byte, 900<<10)}
	batch := message.AppendBatch(nil, small.Message(), large.Message())
	p := s.peer(sendKey)
	if _, err := p.attach(sendTo(0, answer.Source.Address)); err != nil {
		s.Fatal(err)
	}
	for i := range scale(700, 30_000) {
		if err = p.within(patience).transfer(0, uint32(message.FormatBatch), batch); err == nil {
			err = p.settled()
		}
		if err != nil && refused(err) == "" {
			s.Logf("after %d: %v", i, err)
			break
		}
	}
	now, peak := s.resident()
	s.Logf("the last: %v; %d MiB resident, at most %d MiB", err, now>>20, peak>>20)
}

// manyProperties is so many properties without a value, with names of four characters.
func manyProperties(first byte, n int) (ps []codec.Value, pairs []message.Pair) {
	for i := range n {
		name := fmt.Sprintf("%c%c%c%c", first, 'a'+i%26, 'a'+i/26%26, 'a'+i/676)
		ps = append(ps, codec.String(name), codec.Value{})
		pairs = append(pairs, message.Pair{Name: name})
	}
	return ps, pairs
}

// refusedEdits has the holder of locks give messages back with more properties than they may
// have: each is built and refused, and nothing is written.
func refusedEdits(s *scene) {
	const each, properties = 250, 8000
	changes, _ := manyProperties('x', properties)
	_, has := manyProperties('y', properties)
	until := time.Now().Add(time.Duration(scale(8, 60)) * time.Second)
	var asked atomic.Int64
	together(4, 4, func(i int) {
		queue := fmt.Sprint("24-edited-", i)
		s.define(http.MethodPut, "/queues/"+queue, "{}")
		s.Cleanup(func() { _, _, _ = s.call(s.ctx, root, http.MethodDelete, "/api/v1/queues/"+queue, nil) })
		s.fill(queue, each, func(int) message.Draft { return message.Draft{Application: has} })
		p := s.peer(listenKey)
		tokens, err := p.within(patience).locked(10, queue, each)
		if err != nil {
			s.Error(err)
			return
		}
		d, err := p.talk(queue+"/$management", 0)
		for err == nil && time.Now().Before(until) {
			var status int64
			status, _, err = d.within(patience).operation("update-disposition",
				codec.String("lock-tokens"), codec.Raw(codec.AppendUUIDArray(nil, tokens)),
				codec.String("disposition-status"), codec.String("abandoned"),
				codec.String("properties-to-modify"), codec.Map(changes...))
			if status != 400 {
				s.Errorf("status %d, %v", status, err)
				return
			}
			asked.Add(1)
		}
		if err != nil {
			s.Errorf("queue %d: %v", i, err)
		}
	})
	s.Logf("%d requests", asked.Load())
}

// tokensInLargeRequests puts many tokens, for the publishers of a hub, each in a request of
// 56 KB.
func tokensInLargeRequests(s *scene) {
	const waiting = 40
	each := scale(1500, 10_000)
	token := codec.String(access.SignToken(sendKey, "stream", time.Now().Add(time.Hour)))
	padding := []message.Pair{{Name: "a", Value: codec.Binary(make([]byte, 28<<10))}, {Name: "b", Value: codec.Binary(make([]byte, 28<<10))}}
	before, _ := s.resident()
	var put atomic.Int64
	together(2, 2, func(i int) {
		d, err := s.peer(sendKey).talk("$cbs", 0)
		if err == nil {
			err = d.credit(d.at, math.MaxInt32)
		}
		for n := 0; n < each+waiting && err == nil; n++ {
			if n < each {
				name := codec.String(fmt.Sprintf("stream/publishers/%d-%d", i, n))
				err = d.within(patience).transfer(d.to, 0, request("put-token", token, append(padding,
					message.Pair{Name: "type", Value: codec.String("servicebus.windows.net:sastoken")}, message.Pair{Name: "name", Value: name})...))
			}
			if n >= waiting && err == nil {
				_, err = d.within(patience).receive()
				put.Add(1)
			}
		}
		if err != nil {
			s.Errorf("peer %d: %v", i, err)
		}
	})
	now, peak := s.resident()
	s.Logf("%d tokens; %d MiB resident, at most %d MiB", put.Load(), now>>20, peak>>20)
	if grown := peak - before; grown > 100<<20 {
		s.Errorf("%d tokens took %d MiB", put.Load(), grown>>20)
	}
}

// manyLinksForReplies attaches thousands of links, each of which takes three kilobytes.
func manyLinksForReplies(s *scene) {
	const sessions, links, least = 8, 1000, 2500
	charged := func() float64 {
		n, err := s.metric(s.ctx, `triagemq_memory_used_bytes{part="authenticated"}`)
		if err != nil {
			s.Fatal(err)
		}
		return n
	}
	p, before := s.peer(listenKey), charged()
	for session := range uint16(sessions) {
		var burst []byte
		if session > 0 {
			burst = encode(frame.TypeAMQP, session, &frame.Begin{IncomingWindow: 1, OutgoingWindow: 1, HandleMax: math.MaxUint32}, nil)
		}
		for h := range uint32(links) {
			a := receiveFrom(h, "noise/$management")
			a.Target.Address = fmt.Sprint(session, h)
			burst = append(burst, encode(frame.TypeAMQP, session, a, nil)...)
		}
		err := p.within(patience).write(burst)
		for n := 0; n < links && err == nil; n++ {
			_, err = p.await(frame.CodeAttach)
		}
		if err != nil {
			s.Fatal(err)
		}
	}
	if each := (charged() - before) / (sessions * links); each < least {
		s.Errorf("a link is charged with %.0f bytes", each)
	}
}
