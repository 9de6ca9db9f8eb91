// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/message"
)

// longGroupIDs is number 1: messages with a session id of 250 KB, from a client
// that may only send.
func longGroupIDs(s *scene) {
	id := longText(250 << 10)
	accepted, err := s.flood(sendKey, "groups", message.FormatAMQP, scale(100, 270), func(i int) []byte {
		d := message.Draft{SessionID: fmt.Sprint(i, id)}
		return d.Encode(nil)
	})
	s.Logf("%d were accepted; the last: %v", accepted, err)
	if accepted > 0 {
		s.Errorf("%d messages with a session id of 250 KB were accepted", accepted)
	} else if !tooMuch(err) {
		s.Errorf("they were refused with %v", err)
	}
}

// longFairKeys is number 1 with the key that a policy computes.
func longFairKeys(s *scene) {
	key := longText(250 << 10)
	accepted, err := s.flood(sendKey, "fair", message.FormatAMQP, scale(100, 270), func(i int) []byte {
		d := message.Draft{Application: []message.Pair{{Name: "tenant", Value: codec.String(fmt.Sprint(i, key))}}}
		return d.Encode(nil)
	})
	s.Logf("%d were accepted; the last: %v", accepted, err)
	if err != nil && !tooMuch(err) {
		s.Errorf("they were refused with %v", err)
	}
}

// longSessionIDs is number 1 with the state of sessions whose ids have 3 MB,
// from a client that may only listen.
func longSessionIDs(s *scene) {
	d, err := s.peer(listenKey).talk("sessions/$management", 0)
	if err != nil {
		s.Fatal(err)
	}
	id := longText(3 << 20)
	for i := range scale(12, 30) {
		status, _, err := d.within(patience).operation("set-session-state",
			codec.String("session-id"), codec.String(fmt.Sprint(i, id)),
			codec.String("session-state"), codec.Binary([]byte("state")))
		if err != nil {
			s.Logf("request %d: %v", i, err)
			return
		}
		s.Logf("request %d: %d", i, status)
		if status/100 == 2 {
			s.Errorf("the state of a session with an id of 3 MB was set: %d", status)
		}
	}
}

// batchTimesSubscriptions is number 2: one batch of 50,000 empty messages to a topic
// with 202 subscriptions makes ten million copies.
func batchTimesSubscriptions(s *scene) {
	for _, n := range []int{50_000, 4_500} {
		empty := []byte{0x00, 0x53, 0x75, 0xa0, 0x00} // a data section without a byte
		batch := make([]byte, 0, n*len(empty))
		for range n {
			batch = append(batch, empty...)
		}
		p := s.peer(sendKey)
		if _, err := p.attach(sendTo(0, "fan")); err != nil {
			s.Fatal(err)
		}
		begin := time.Now()
		err := p.transfer(0, uint32(message.FormatBatch), batch)
		if err == nil {
			err = p.within(time.Minute).settled()
		}
		s.Logf("a batch of %d messages for %d subscriptions, after %v: %v", n, fanOut, time.Since(begin).Round(time.Millisecond), err)
		if err == nil && n > 4_500 {
			s.Errorf("a batch of %d messages was accepted", n)
		}
		p.nc.Close()
	}
	many := "[" + strings.TrimSuffix(strings.Repeat(`{"Body":""},`, 20_000), ",") + "]"
	resp, text, err := s.call(s.ctx, sendKey, http.MethodPost, "/fan/messages", strings.NewReader(many), "Content-Type", "application/vnd.microsoft.servicebus.json")
	if err != nil {
		s.Fatal(err)
	}
	s.Logf("a batch of 20000 over HTTP: %s %.200s", resp.Status, text)
	if resp.StatusCode/100 == 2 {
		s.Error("a batch of 20000 messages was accepted over HTTP")
	}
}

// rulesWithLongLabels is number 3: 18 rules with a label of 3.9 MB, from a
// client that may only listen.
func rulesWithLongLabels(s *scene) {
	d, err := s.peer(listenKey).talk("rules/subscriptions/s/$management", 0)
	if err != nil {
		s.Fatal(err)
	}
	label := codec.String(longText(39 << 20 / 10))
	for i := range 18 {
		status, _, err := d.within(patience).operation("add-rule",
			codec.String("rule-name"), codec.String(fmt.Sprint("r", i)),
			codec.String("rule-description"), codec.Map(codec.String("correlation-filter"), codec.Map(codec.String("label"), label)))
		if err != nil {
			s.Logf("request %d: %v", i, err)
			return
		}
		if status/100 == 2 {
			s.Errorf("a rule with a label of 3.9 MB was made: %d", status)
		}
	}
}

// peekOfWideArrays is number 4: a message whose body is a list of arrays, each of
// 65,536 nulls, is shown as JSON.
func peekOfWideArrays(s *scene) {
	for _, size := range []int{3 << 10, 240 << 10} {
		arrays := size / len(wideArray(1<<16))
		body, at := codec.BeginList(nil)
		for range arrays {
			body = append(body, wideArray(1<<16)...)
		}
		body = codec.EndList(body, at, arrays)
		payload := append([]byte{0x00, 0x53, 0x77}, body...) // an amqp-value section
		accepted, err := s.flood(sendKey, "arrays", message.FormatAMQP, 1, func(int) []byte { return payload })
		s.Logf("%d bytes: accepted %d, %v", size, accepted, err)
		if err != nil && !tooMuch(err) {
			s.Errorf("a message of %d bytes was rejected with %v", size, err)
		}
		resp, text, err := s.call(s.ctx, listenKey, http.MethodGet, "/api/v1/queues/arrays/messages", nil)
		if err != nil {
			s.Errorf("peek at a message of %d bytes: %v", size, err)
			return
		}
		s.Logf("peek: %s, %d bytes", resp.Status, len(text))
		if len(text) > 4<<20 {
			s.Errorf("a message of %d bytes became %d bytes of JSON or more", size, len(text))
		}
	}
}

// actionsThatDouble is number 6: rules whose actions double a property, from a
// client that may only listen. The first does so 32 times; the others make many
// copies of 100 KB.
func actionsThatDouble(s *scene) {
	d, err := s.peer(listenKey).talk("doubling/subscriptions/s/$management", 0)
	if err != nil {
		s.Fatal(err)
	}
	made := 0
	for i := range scale(100, 500) {
		times := 4
		if i == 0 {
			times = 32
		}
		status, _, err := d.within(patience).operation("add-rule",
			codec.String("rule-name"), codec.String(fmt.Sprint("double", i)),
			codec.String("rule-description"), codec.Map(
				codec.String("sql-filter"), codec.Map(codec.String("expression"), codec.String("1=1")),
				codec.String("sql-rule-action"), codec.Map(codec.String("expression"),
					codec.String(strings.TrimSuffix(strings.Repeat("SET p=p+p;", times), ";")))))
		if err != nil {
			s.Fatal(err)
		}
		if status/100 != 2 {
			s.Logf("rule %d: %d", i, status)
			break
		}
		made++
	}
	accepted, err := s.flood(sendKey, "doubling", message.FormatAMQP, 10, func(int) []byte {
		d := message.Draft{Application: []message.Pair{{Name: "p", Value: codec.String(longText(6 << 10))}}}
		return d.Encode(nil)
	})
	s.Logf("%d rules; accepted %d, %v", made, accepted, err)
}

// oneDispositionOfMany is number 13: a request of 4 MB that is stored with each of the
// hundred messages that it names.
func oneDispositionOfMany(s *scene) {
	const count = 100
	s.fillSmall("dispositions", count)
	p := s.peer(listenKey)
	tokens, err := p.locked(0, "dispositions", count)
	if err != nil {
		s.Fatal(err)
	}
	d, err := p.talk("dispositions/$management", 1)
	if err != nil {
		s.Fatal(err)
	}
	before := s.stored()
	changes := codec.Map(codec.String("large"), codec.String(longText(39<<20/10)))
	status, _, err := d.within(patience).operation("update-disposition",
		codec.String("lock-tokens"), codec.Raw(codec.AppendUUIDArray(nil, tokens)),
		codec.String("disposition-status"), codec.String("abandoned"),
		codec.String("properties-to-modify"), changes)
	s.Logf("the answer: %d, %v; %d MiB were written", status, err, (s.stored()-before)>>20)
	if grown := s.stored() - before; grown > 64<<20 {
		s.Errorf("one request made the store larger by %d MiB", grown>>20)
	}
}

// stored returns how much the store takes on disk.
func (b *broker) stored() (sum int64) {
	_ = filepath.WalkDir(filepath.Join(b.dir, "data"), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // removed meanwhile
		}
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// largeProperties is the part of number 12 about what is stored beside bodies: small
// messages that are deferred with 60 KB of properties, a thousand with one frame.
func largeProperties(s *scene) {
	const each = 1000
	count := scale(10_000, 30_000)
	s.fillSmall("properties", count)
	p := s.peer(listenKey)
	annotations, at := codec.BeginMap(nil)
	annotations = codec.AppendString(codec.AppendSymbol(annotations, "large"), longText(60<<10))
	annotations = codec.EndMap(annotations, at, 1)
	if _, err := p.within(time.Minute).locked(0, "properties", count); err != nil {
		s.Fatal(err)
	}
	for first := 0; first < count; first += each {
		err := p.within(patience).send(&frame.Disposition{Role: frame.Receiver, First: uint32(first), Last: uint32(first + each - 1),
			State: frame.State{Kind: frame.StateModified, UndeliverableHere: true, Annotations: annotations}})
		if err != nil {
			s.Logf("after %d of %d messages: %v", first, count, err)
			break
		}
	}
	outcomes := 0
	for outcomes < count {
		in, err := p.within(patience).await(frame.CodeDisposition)
		if err != nil {
			s.Logf("after %d of %d outcomes: %v", outcomes, count, err)
			break
		}
		var d frame.Disposition
		d.Decode(&in.fields)
		outcomes += int(d.Last-d.First) + 1
	}
	var view struct {
		Runtime struct {
			Bytes, Deferred int64
		}
	}
	text, err := s.get(s.ctx, root, "/api/v1/queues/properties")
	if err == nil {
		err = json.Unmarshal([]byte(text), &view)
	}
	if err != nil {
		s.Error(err)
	}
	stored := view.Runtime.Deferred * (60 << 10)
	s.Logf("%d messages are deferred, with %d MiB; %d MiB count", view.Runtime.Deferred, stored>>20, view.Runtime.Bytes>>20)
	if view.Runtime.Bytes < stored*9/10 {
		s.Errorf("%d MiB are stored, %d MiB count towards the size of the queue", stored>>20, view.Runtime.Bytes>>20)
	}
}
