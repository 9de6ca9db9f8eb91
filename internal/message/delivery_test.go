// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

var (
	enqueued = time.UnixMilli(1700000000000)
	until    = time.UnixMilli(1700000060000)
	token    = [16]byte{0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf}
)

func locked() BrokerProperties {
	return BrokerProperties{SequenceNumber: 42, EnqueuedTime: enqueued, LockedUntil: until, LockToken: token, HasLock: true}
}

// show lists the pairs of a map section as "name kind value", sorted.
func show(m *Message, s section) []string {
	var out []string
	for k, v := range m.pairs(s) {
		out = append(out, fmt.Sprintf("%s %v %v", k, v.Kind(), v))
	}
	slices.Sort(out)
	return out
}

const (
	showSequence = "x-opt-sequence-number long 42"
	showEnqueued = "x-opt-enqueued-time timestamp 2023-11-14T22:13:20.000Z"
	showUntil    = "x-opt-locked-until timestamp 2023-11-14T22:14:20.000Z"
	showToken    = "x-opt-lock-token uuid a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf"
)

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// The SDK's own test sends all this and wants it back exactly, with only the four
// annotations of the broker added.
func TestDeliveryIsTheSendersPlusFour(t *testing.T) {
	d := full()
	d.Annotations = []Pair{{"hello", codec.String("annotation")}}
	raw := d.Encode(nil)
	raw = append(raw, unhex(t, "005375a00178 005378c10602a3016b5401")...) // second data, footer
	sent := parse(t, raw)
	got := parse(t, AppendDelivery(nil, sent, locked()))

	equal(t, "delivery annotations", show(got, sectionDelivery), []string{"hello string delivery", showToken})
	equal(t, "message annotations", show(got, sectionAnnotations),
		[]string{"hello string annotation", showEnqueued, showUntil, showSequence})
	if bare := sent.raw[sent.end[sectionAnnotations]:]; !bytes.HasSuffix(got.Bytes(), bare) ||
		len(got.Bytes())-len(bare) != int(got.end[sectionAnnotations]) {
		t.Error("the bare message changed")
	}
	if got, want := got.Header(), sent.Header(); got != want {
		t.Errorf("header %+v, want %+v", got, want)
	}
}

func TestDeliveryOfABareMessage(t *testing.T) {
	sent := parse(t, unhex(t, "005375a00161"))
	tests := []struct {
		name       string
		change     func(*BrokerProperties)
		delivery   []string
		annotation []string
	}{
		{"locked", func(*BrokerProperties) {}, []string{showToken}, []string{showEnqueued, showUntil, showSequence}},
		{"received and deleted", func(s *BrokerProperties) { s.HasLock, s.LockedUntil = false, time.Time{} },
			nil, []string{showEnqueued, showSequence}},
		{"peeked", func(s *BrokerProperties) { s.HasLock, s.LockedUntil, s.State = false, time.Time{}, StateScheduled },
			nil, []string{showEnqueued, "x-opt-message-state int 2", showSequence}},
		{"active", func(s *BrokerProperties) { s.HasLock, s.LockedUntil, s.State = false, time.Time{}, StateActive },
			nil, []string{showEnqueued, "x-opt-message-state int 0", showSequence}},
		{"forwarded from a dead-letter queue", func(s *BrokerProperties) { s.EnqueuedSequenceNumber, s.DeadLetterSource = 7, "q" },
			[]string{showToken}, []string{"x-opt-deadletter-source string q", "x-opt-enqueue-sequence-number long 7",
				showEnqueued, showUntil, showSequence}},
		{"of one queue among several", func(s *BrokerProperties) { s.Source = "orders" },
			[]string{showToken}, []string{showEnqueued, showUntil, showSequence, "x-triage-source string orders"}},
		{"to a receiver that keeps several", func(s *BrokerProperties) { s.Level, s.HasLevel = 7, true },
			[]string{showToken}, []string{showEnqueued, showUntil, showSequence, "x-triage-level ubyte 7"}},
		{"to a receiver that asks for the class", func(s *BrokerProperties) { s.Level, s.HasLevel, s.Class = 7, true, "paying" },
			[]string{showToken}, []string{showEnqueued, showUntil, showSequence, "x-triage-class string paying", "x-triage-level ubyte 7"}},
		{"of a class with an objective", func(s *BrokerProperties) {
			s.Level, s.HasLevel, s.Class, s.Objective = 7, true, "paying", 2*time.Second
		}, []string{showToken}, []string{showEnqueued, showUntil, showSequence, "x-triage-class string paying", "x-triage-level ubyte 7",
			"x-triage-objective long 2000"}},
		{"with a source that makes the map long", func(s *BrokerProperties) { s.DeadLetterSource = strings.Repeat("q", 260) },
			[]string{showToken}, []string{"x-opt-deadletter-source string " + strings.Repeat("q", 260),
				showEnqueued, showUntil, showSequence}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := locked()
			tt.change(&s)
			got := parse(t, AppendDelivery(nil, sent, s))
			equal(t, "delivery annotations", show(got, sectionDelivery), tt.delivery)
			equal(t, "message annotations", show(got, sectionAnnotations), tt.annotation)
			if !bytes.HasSuffix(got.Bytes(), sent.Bytes()) {
				t.Errorf("body lost: % x", got.Bytes())
			}
		})
	}
}

// A received message that is sent again carries old broker annotations, or
// nulls instead of them. A null lock time or a long of another type makes Go
// clients panic.
func TestDeliveryReplacesOldBrokerAnnotations(t *testing.T) {
	d := Draft{
		DeliveryAnnotations: []Pair{{AnnotationLockToken, codec.UUID([16]byte{9})}},
		Annotations: []Pair{
			{AnnotationSequenceNumber, codec.Value{}}, {AnnotationEnqueuedTime, codec.String("x")},
			{AnnotationLockedUntil, codec.Value{}}, {AnnotationState, codec.Int(1)},
			{AnnotationEnqueuedSequenceNumber, codec.Long(3)}, {AnnotationSequenceNumber, codec.Long(3)},
			{AnnotationPartitionKey, codec.Value{}}, {AnnotationDeadLetterSource, codec.Value{}},
		},
	}
	sent := d.Message()
	got := parse(t, AppendDelivery(nil, sent, locked()))
	equal(t, "delivery annotations", show(got, sectionDelivery), []string{showToken})
	equal(t, "message annotations", show(got, sectionAnnotations),
		[]string{"x-opt-deadletter-source null null", showEnqueued, showUntil, "x-opt-partition-key null null", showSequence})

	s := locked()
	s.HasLock, s.LockedUntil, s.DeadLetterSource = false, time.Time{}, "q"
	got = parse(t, AppendDelivery(nil, sent, s))
	equal(t, "delivery annotations without a lock", show(got, sectionDelivery), nil)
	equal(t, "message annotations without a lock", show(got, sectionAnnotations),
		[]string{"x-opt-deadletter-source string q", showEnqueued, "x-opt-partition-key null null", showSequence})
}

func TestDeliveryHeader(t *testing.T) {
	tests := []struct {
		name, sent string
		count      uint32
		want       string // after the descriptor
	}{
		{"none", "", 0, "c00605 40404040 43"},
		{"none, third attempt", "", 2, "c00705 40404040 5202"},
		{"durable", "005370c0020141", 0, "c00605 41404040 43"},
		{"durable false is kept", "005370c003015600", 0, "c00705 5600404040 43"},
		{"priority 0 is kept", "005370c004024050 00", 0, "c00705 405000 4040 43"},
		{"ttl", "005370c0080340407000015f90", 300, "c00e05 40407000015f90 40 700000012c"},
		{"first-acquirer and count are ours", "005370c0070540404041 5209", 1, "c00705 40404040 5201"},
	}
	for _, tt := range tests {
		out := AppendDelivery(nil, parse(t, unhex(t, tt.sent)), BrokerProperties{DeliveryCount: tt.count, EnqueuedTime: enqueued})
		got := parse(t, out).bytes(sectionHeader)
		if want := append([]byte{0, 0x53, 0x70}, unhex(t, tt.want)...); !bytes.Equal(got, want) {
			t.Errorf("%s:\ngot  %x\nwant %x", tt.name, got, want)
		}
	}
}

func TestDeliveryFillsInAMessageID(t *testing.T) {
	const id = "0000018bcfe56800000000000000002a"
	for _, raw := range []string{"", "00537345", "005373c0020140", "005373c00603 4040 a10161", "005374c10100"} {
		sent := parse(t, unhex(t, raw))
		first := parse(t, AppendDelivery(nil, sent, locked()))
		again := locked()
		again.LockToken[0]++
		again.DeliveryCount++
		second := parse(t, AppendDelivery(nil, sent, again))
		if first.MessageIDString() != id || second.MessageIDString() != id {
			t.Errorf("%q: ids %q and %q, want %q both times", raw, first.MessageIDString(), second.MessageIDString(), id)
		}
		if first.MessageID().Kind() != codec.KindString || first.To() != sent.To() {
			t.Errorf("%q: id is %v, to %q", raw, first.MessageID().Kind(), first.To())
		}
	}
	d := Draft{MessageID: codec.Ulong(0)}
	if got := parse(t, AppendDelivery(nil, d.Message(), locked())); got.MessageIDString() != "0" {
		t.Errorf("id 0 became %q", got.MessageIDString())
	}
}

func TestDeliveryAppends(t *testing.T) {
	d := full()
	prefix := []byte("frame header")
	got := AppendDelivery(slices.Clone(prefix), d.Message(), locked())
	if !bytes.HasPrefix(got, prefix) {
		t.Fatal("the bytes before it were changed")
	}
	parse(t, got[len(prefix):])
}

// A delivery shows the effective time to live, in every way in which a client
// may compute it. A time to live that the entity allows stays as it was sent.
func TestDeliveryShowsTheEffectiveTimeToLive(t *testing.T) {
	const day = 24 * time.Hour
	made := enqueued.Add(-time.Minute)
	for what, c := range map[string]struct {
		sent      Draft
		holds     time.Duration
		header    time.Duration
		from, end time.Time
	}{
		"none, no expiry":    {},
		"none":               {holds: time.Hour, header: time.Hour},
		"shorter":            {sent: Draft{TTL: time.Minute}, holds: time.Hour, header: time.Minute},
		"longer":             {sent: Draft{TTL: 2 * time.Hour}, holds: time.Hour, header: time.Hour},
		"dead letter":        {sent: Draft{TTL: time.Minute}, header: time.Minute},
		"by two times":       {sent: Draft{CreationTime: made, AbsoluteExpiry: made.Add(60 * day)}, holds: time.Hour, header: time.Hour, from: made, end: made.Add(time.Hour)},
		"short by two times": {sent: Draft{TTL: time.Minute, CreationTime: made, AbsoluteExpiry: made.Add(time.Minute)}, holds: time.Minute, header: time.Minute, from: made, end: made.Add(time.Minute)},
		"when it was made":   {sent: Draft{CreationTime: made}, holds: 60 * day, header: math.MaxUint32 * time.Millisecond, from: made, end: made.Add(60 * day)},
		"none, very long":    {holds: 60 * day, header: math.MaxUint32 * time.Millisecond, from: enqueued, end: enqueued.Add(60 * day)},
	} {
		for _, id := range []string{"", "id"} {
			if id != "" {
				c.sent.MessageID = codec.String(id)
			}
			c.sent.Body = []byte("b")
			s := locked()
			s.TTL = c.holds
			m := parse(t, AppendDelivery(nil, parse(t, c.sent.Encode(nil)), s))
			if h := m.Header(); h.TTL != c.header {
				t.Errorf("%s: header says %v, want %v", what, h.TTL, c.header)
			}
			if !m.CreationTime().Equal(c.from) || !m.AbsoluteExpiry().Equal(c.end) {
				t.Errorf("%s: from %v to %v, want %v to %v", what, m.CreationTime(), m.AbsoluteExpiry(), c.from, c.end)
			}
			if got := m.MessageIDString(); got == "" || id != "" && got != id {
				t.Errorf("%s: message-id %q, want one, or %q", what, got, id)
			}
		}
	}
}
