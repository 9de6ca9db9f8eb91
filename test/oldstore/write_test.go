// SPDX-License-Identifier: Apache-2.0

package oldstore

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	switchboard "github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// options make snapshots frequent and their steps small.
var options = queueserver.Options{SnapshotAfter: 1 << 20, SnapshotStep: 16}

// ballast are two queues, one in each shard, for messages that come and go: they
// leave segments in which little is needed, out of which snapshots move it.
var ballast = []string{"ballast-0", "ballast-1", "ballast-2", "ballast-3"}

// policies are queues with one discipline each.
var policies = map[string]string{
	"aging":       `{"discipline": "aging", "aging": {"every": "1m", "upTo": 9}, "classes": [{"name": "high", "level": 7, "when": "n >= 4"}, {"name": "rest", "level": 2}]}`,
	"deadline":    `{"discipline": "deadline", "classes": [{"name": "paid", "level": 8, "when": "n > 3", "objective": {"wait": "10s", "share": 0.9}}, {"name": "free", "level": 3, "objective": {"wait": "10m"}}]}`,
	"weighted":    `{"discipline": "weighted", "classes": [{"name": "gold", "level": 8, "when": "n % 2 = 0", "weight": 3}, {"name": "tin", "level": 3, "weight": 1}]}`,
	"saturating":  `{"saturation": {"waiting": 5, "oldest": "5m"}, "classes": [{"name": "a", "level": 8, "when": "n % 2 = 0", "weight": 2}, {"name": "b", "level": 3}]}`,
	"fair":        `{"fairKey": "tenant", "keyDefaults": {"concurrency": 2}, "keys": [{"key": "t1", "weight": 2, "rate": "100/s"}], "watermarks": {"depth": 1000, "bytes": "10MiB"}}`,
	"newest":      `{"within": "lifo", "classes": [{"name": "all", "limit": 100, "bytes": "1MiB", "shed": "evict", "expected": "10/s"}]}`,
	"finishing":   `{"within": "finishFirst", "fairKey": "tenant", "alerts": {"webhook": "https://example.com/hook", "secret": "0123456789abcdef0123456789abcdef"}}`,
	"reclassify":  `{"classes": [{"name": "before", "level": 5}]}`,
	"replies":     `{"discipline": "deadline", "classes": [{"name": "fast", "level": 8, "objective": {"wait": "10s"}}, {"name": "slow", "level": 1, "objective": {"wait": "10h"}}]}`,
	"paused-fair": `{"fairKey": "tenant", "keyDefaults": {"pace": "5/s"}}`,
}

// writeStore writes testdata/store.tar.gz.
func writeStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		power := vfs.NewFault(disk)
		b := open(t, power)
		b.wait = func(d time.Duration) { time.Sleep(d) }
		b.define()
		b.fill("early")
		b.churn() // the bodies of fill are moved
		b.fill("late")
		b.settle()

		// The power may fail before each sync.
		var cuts []*vfs.Mem
		power.Before(func(op vfs.Op, _ string) error {
			if op == vfs.OpSync {
				cuts = append(cuts, disk.CrashClone(0))
			}
			return nil
		})
		b.churn()
		power.Before(nil)
		b.stop()
		pack(t, choose(t, cuts), filepath.Join("testdata", storeFile))
	})
}

func text(s string) codec.Value { return codec.String(s) }

// draft returns a message with a body that names it, and padding.
func draft(name string, padding int, change ...func(*message.Draft)) *message.Message {
	d := message.Draft{Body: []byte(name + " " + strings.Repeat(".", padding))}
	for _, c := range change {
		c(&d)
	}
	return d.Message()
}

func property(name string, v codec.Value) func(*message.Draft) {
	return func(d *message.Draft) { d.Application = append(d.Application, message.Pair{Name: name, Value: v}) }
}

// define creates the entities.
func (b broker) define() {
	b.t.Helper()
	queues := []entity.Queue{
		{Name: "plain", MaxDeliveryCount: 2, DeadLetteringOnMessageExpiration: true, UserMetadata: "as it came"},
		{Name: "sessions", RequiresSession: true},
		{Name: "session-levels", RequiresSession: true, Policy: json.RawMessage(`{"discipline": "aging", "aging": {"every": "1m", "upTo": 9}}`)},
		{Name: "unique", RequiresDuplicateDetection: true, DuplicateDetectionHistoryTimeWindow: entity.Duration(7 * 24 * time.Hour)},
		{Name: "requests"},
		{Name: "target", RequiresSession: true},
		{Name: "forwarding", ForwardTo: "target"},
		{Name: "dropped"},
		{Name: "keyed", AuthorizationRules: entity.AuthorizationRules{{KeyName: "reader", Rights: []entity.Right{entity.Listen},
			PrimaryKey: "cHJpbWFyeSBrZXkgb2YgYW4gb2xkIHN0b3JlLi4uLi4=", SecondaryKey: "c2Vjb25kYXJ5IGtleSBvZiBhbiBvbGQgc3RvcmUuLi4="}}},
	}
	for name, policy := range policies {
		queues = append(queues, entity.Queue{Name: name, Policy: json.RawMessage(policy), DefaultMessageTimeToLive: entity.Duration(400 * 24 * time.Hour)})
	}
	for _, name := range ballast {
		queues = append(queues, entity.Queue{Name: name})
	}
	for _, q := range queues {
		if _, err := b.CreateQueue(b.t.Context(), q); err != nil {
			b.t.Fatalf("create queue %q: %v", q.Name, err)
		}
	}
	for _, tp := range []entity.Topic{{Name: "news"}, {Name: "once", RequiresDuplicateDetection: true}} {
		if _, err := b.CreateTopic(b.t.Context(), tp); err != nil {
			b.t.Fatal(err)
		}
	}
	all := entity.Filter{Kind: entity.TrueFilter}
	for topic, subs := range map[string][]entity.Subscription{
		"news": {
			{Name: "all"},
			{Name: "few", Rules: []entity.Rule{
				{Name: "sql", Filter: entity.Filter{Kind: entity.SQLFilter, SQL: "n > @least", Parameters: map[string]entity.Value{"least": value(b.t, "3")}},
					Action: entity.Action{SQL: "SET seen = 'yes'; REMOVE tenant"}},
				{Name: "exact", Filter: entity.Filter{Kind: entity.CorrelationFilter, Correlation: &entity.Correlation{Label: "urgent", Properties: map[string]entity.Value{"n": value(b.t, "1")}}}},
			}},
			{Name: "grouped", RequiresSession: true, Rules: []entity.Rule{{Name: "all", Filter: all}}, Policy: json.RawMessage(`{"classes": [{"name": "odd", "level": 6, "when": "n % 2 = 1"}, {"name": "even", "level": 2}]}`)},
			{Name: "none", Rules: []entity.Rule{{Name: "false", Filter: entity.Filter{Kind: entity.FalseFilter}}}},
		},
		"once": {{Name: "copy"}},
	} {
		for _, s := range subs {
			if _, err := b.CreateSubscription(b.t.Context(), topic, s); err != nil {
				b.t.Fatalf("create subscription %q: %v", s.Name, err)
			}
		}
	}
}

func value(t testing.TB, text string) entity.Value {
	t.Helper()
	var v entity.Value
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// fill sends messages to every queue and topic.
func (b broker) fill(when string) {
	b.t.Helper()
	targets := []string{"plain", "requests", "dropped", "keyed"}
	for name := range policies {
		if name != "replies" {
			targets = append(targets, name)
		}
	}
	for i := range 6 {
		number, tenant := property("n", codec.Int(int32(i))), property("tenant", text(fmt.Sprint("t", i%3)))
		name := fmt.Sprint(when, "-", i)
		for _, addr := range targets {
			b.send(addr, draft(name, 100*i, number, tenant, property("Priority", codec.Int(int32(3+i%4)))))
		}
		group := func(d *message.Draft) { d.SessionID = fmt.Sprint("s", i%3) }
		id := func(d *message.Draft) { d.MessageID = text(fmt.Sprint("dup-", i)) }
		lives := func(d *message.Draft) { d.TTL, d.Subject = 300*24*time.Hour, "urgent" }
		b.send("sessions", draft(name, 50, group, number))
		b.send("session-levels", draft(name, 50, group, property("Priority", codec.Int(int32(i)))))
		b.send("unique", draft(name, 50, id, lives))
		b.send("once", draft(name, 50, id, number))
		b.send("news", draft(name, 200, group, number, tenant, lives), draft(name+"b", 0, group, number))
		b.send("forwarding", draft(name, 0, number)) // the target needs a session: a transfer dead letter
		b.wait(7 * time.Second)
	}
	later := func(d *message.Draft) {
		d.Annotations = append(d.Annotations, message.Pair{
			Name: message.AnnotationScheduledEnqueueTime, Value: codec.Timestamp(time.Date(2000, 6, 1, 12, 0, 0, 0, time.UTC))})
	}
	for _, addr := range []string{"plain", "fair", "news"} {
		_, err := b.Schedule(b.t.Context(), addr, []*message.Message{draft(when+"-scheduled", 10, later), draft(when+"-canceled", 10, later)}, switchboard.SenderOptions{})
		if err != nil {
			b.t.Fatalf("schedule for %q: %v", addr, err)
		}
	}
}

func (b broker) send(addr string, batch ...*message.Message) {
	b.t.Helper()
	s, err := b.OpenSender(addr, switchboard.SenderOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	defer s.Close()
	done := make(chan error, 1)
	s.Send(batch, func(err error) { done <- err })
	if err := <-done; err != nil {
		b.t.Fatalf("send to %q: %v", addr, err)
	}
}

// churn sends messages and removes them, until every shard has taken snapshots.
func (b broker) churn() {
	b.t.Helper()
	for range 2 {
		for _, addr := range ballast {
			for i := range 6 {
				b.send(addr, draft(fmt.Sprint("ballast-", i), 100<<10))
			}
			if _, err := b.Purge(b.t.Context(), addr); err != nil {
				b.t.Fatal(err)
			}
		}
		b.wait(5 * time.Second)
		synctest.Wait()
	}
}

// settle does with some messages what consumers and operators do.
func (b broker) settle() {
	b.t.Helper()
	properties := []message.Change{{Name: "note", Value: text("changed")}}
	for _, step := range []struct {
		addr    string
		outcome switchboard.Outcome
	}{
		{"plain", switchboard.Outcome{Disposition: switchboard.Complete}},
		{"plain", switchboard.Outcome{Disposition: switchboard.Abandon, Properties: properties}},
		{"plain", switchboard.Outcome{Disposition: switchboard.Abandon}}, // the second time: a dead letter
		{"plain", switchboard.Outcome{Disposition: switchboard.Defer}},
		{"plain", switchboard.Outcome{Disposition: switchboard.Release}},
		{"plain", switchboard.Outcome{Disposition: switchboard.DeadLetter, Reason: "refused", Description: "cannot be read", Properties: properties}},
		{"plain", switchboard.Outcome{Disposition: switchboard.Abandon}},
		{"fair", switchboard.Outcome{Disposition: switchboard.Defer, Properties: properties}},
		{"fair", switchboard.Outcome{Disposition: switchboard.Complete}},
		{"weighted", switchboard.Outcome{Disposition: switchboard.Complete}},
		{"weighted", switchboard.Outcome{Disposition: switchboard.DeadLetter, Reason: "class"}},
		{"finishing", switchboard.Outcome{Disposition: switchboard.Complete}},
		{"aging", switchboard.Outcome{Disposition: switchboard.Complete}},
		{"deadline", switchboard.Outcome{Disposition: switchboard.Complete}},
		{"news/Subscriptions/all", switchboard.Outcome{Disposition: switchboard.DeadLetter, Reason: "topic"}},
		{"news/Subscriptions/few", switchboard.Outcome{Disposition: switchboard.Defer}},
	} {
		b.settleOne(step.addr, step.outcome)
	}
	for _, id := range []string{"s0", "s1", "s2", "idle"} {
		b.setState("sessions", id, "state of "+id)
	}
	b.setState("news/Subscriptions/grouped", "s1", "state in a subscription")
	b.setState("sessions", "s2", "another "+strings.Repeat("state ", 50))

	b.request()
	b.lock("requests")
	b.must(b.CancelScheduled(b.t.Context(), "plain", b.numbered("plain", "late-canceled")))
	_, err := b.SetPolicy(b.t.Context(), "reclassify", json.RawMessage(`{"classes": [{"name": "small", "level": 7, "when": "n < 3"}, {"name": "large", "level": 1}]}`))
	b.must(err)
	b.must(b.Pause(b.t.Context(), "paused-fair", switchboard.Pause{Receiving: true}))
	b.must(b.DeleteQueue(b.t.Context(), "dropped"))
	_, err = b.CreateRule(b.t.Context(), "news", "none", entity.Rule{Name: "extra", Filter: entity.Filter{Kind: entity.SQLFilter, SQL: "n = 99"}})
	b.must(err)
	_, err = b.Redrive(b.t.Context(), "weighted", switchboard.Redrive{Max: 1})
	b.must(err)
	b.wait(time.Minute) // measurements are stored
}

func (b broker) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// numbered returns the numbers of the messages with that name.
func (b broker) numbered(addr, name string) []queue.SeqNo {
	b.t.Helper()
	ds, err := b.Peek(b.t.Context(), addr, 1, 1000, nil)
	b.must(err)
	var seqs []queue.SeqNo
	for _, d := range ds {
		m, err := d.Message()
		b.must(err)
		if strings.Contains(bodyOf(m), name) {
			seqs = append(seqs, d.Seq)
		}
	}
	return seqs
}

// receiver opens a receiver with credit for one message.
func (b broker) receiver(addr string, o switchboard.ReceiverOptions) (*switchboard.Receiver, *sink) {
	b.t.Helper()
	k := newSink()
	o.Sink = k
	rec, err := b.OpenReceiver(b.t.Context(), addr, o)
	if err != nil {
		b.t.Fatalf("receive from %q: %v", addr, err)
	}
	rec.SetDeliveryLimit(1)
	return rec, k
}

func (b broker) settleOne(addr string, o switchboard.Outcome) {
	b.t.Helper()
	rec, k := b.receiver(addr, switchboard.ReceiverOptions{})
	defer rec.Close()
	d := <-k.deliveries
	done := make(chan error, 1)
	rec.Settle([]queue.Token{d.Token}, o, func(errs []error) { done <- errors.Join(errs...) })
	if err := <-done; err != nil {
		b.t.Fatalf("settle message %d of %q: %v", d.Seq, addr, err)
	}
}

func (b broker) setState(addr, id, state string) {
	b.t.Helper()
	rec, err := b.OpenReceiver(b.t.Context(), addr, switchboard.ReceiverOptions{Session: &id, Sink: newSink()})
	if err != nil {
		b.t.Fatalf("session %q of %q: %v", id, addr, err)
	}
	defer rec.Close()
	b.must(b.SetSessionState(b.t.Context(), addr, rec.SessionLock(), []byte(state)))
}

// request sends a request and its reply, which inherits the priority.
func (b broker) request() {
	b.t.Helper()
	b.send("requests", draft("request", 0, property("Priority", codec.Int(9)), func(d *message.Draft) {
		d.MessageID, d.ReplyTo, d.TTL = text("request-1"), "replies", 200*24*time.Hour
	}))
	rec, k := b.receiver("requests", switchboard.ReceiverOptions{})
	defer rec.Close()
	d := <-k.deliveries
	m, err := d.Message()
	b.must(err)
	b.NoteDelivered("requests", "", &d, m)
	b.wait(3 * time.Second)
	b.send("replies", draft("reply", 0, func(d *message.Draft) { d.CorrelationID = text("request-1") }), draft("unasked", 0))
}

// lock leaves a message with a consumer: after the power cut it is ready again.
func (b broker) lock(addr string) {
	b.t.Helper()
	rec, k := b.receiver(addr, switchboard.ReceiverOptions{})
	<-k.deliveries
	rec.Close()
}

// choose returns the disk with the most of a snapshot that has begun and not ended,
// after one that has moved bodies and was finished.
func choose(t testing.TB, cuts []*vfs.Mem) *vfs.Mem {
	t.Helper()
	var best *vfs.Mem
	most := 0
	for _, disk := range cuts {
		for _, s := range snapshotsOf(t, disk) {
			if s.ended && s.moved > 0 && s.pieces > most {
				best, most = disk, s.pieces
			}
		}
	}
	if best == nil {
		t.Fatalf("none of %d power cuts was in the middle of a snapshot", len(cuts))
	}
	t.Logf("%d power cuts; %d records of the unfinished snapshot", len(cuts), most)
	return best
}

// snapshots is what a disk has of the snapshots of one shard.
type snapshots struct {
	ended  bool // one has
	open   bool // the last one has not
	moved  int  // bodies that finished ones have moved
	pieces int  // records of queues in the open snapshot
}

// snapshotsOf reads the journal of a disk.
func snapshotsOf(t testing.TB, disk *vfs.Mem) map[journal.Shard]*snapshots {
	t.Helper()
	const begin, piece, end, body = 7, 9, 10, 1 // docs/format/shard-records.md
	found := make(map[journal.Shard]*snapshots)
	seen := make(map[[sha256.Size]byte]bool)
	for e, err := range repair.Dump(disk) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Manifest || len(e.Payload) == 0 {
			continue
		}
		s := found[e.Shard]
		if s == nil {
			s = new(snapshots)
			found[e.Shard] = s
		}
		switch e.Payload[0] {
		case body:
			if sum := sha256.Sum256(binary.AppendUvarint(e.Payload, uint64(e.Shard))); !seen[sum] {
				seen[sum] = true
			} else if s.open && !strings.Contains(string(e.Payload), "ballast") {
				s.moved++
			}
		case begin:
			s.open, s.pieces = true, 0
		case piece:
			s.pieces++
		case end:
			s.open, s.pieces, s.ended = false, 0, true
		}
	}
	return found
}

// sink keeps what is delivered.
type sink struct {
	deliveries chan switchboard.Delivery
	drained    chan struct{}
}

func newSink() *sink {
	return &sink{make(chan switchboard.Delivery, 1000), make(chan struct{}, 1)}
}

func (s *sink) Deliver(ds []switchboard.Delivery) {
	for _, d := range ds {
		s.deliveries <- d
	}
}

func (s *sink) Drained()    { s.drained <- struct{}{} }
func (s *sink) Ended(error) {}

// drain returns the names of the messages that there are, in the order of their
// delivery.
func (s *sink) drain(rec *switchboard.Receiver) string {
	rec.Drain()
	<-s.drained
	var names []string
	for len(s.deliveries) > 0 {
		d := <-s.deliveries
		names = append(names, fmt.Sprint("#", d.Seq))
	}
	return strings.Join(names, " ")
}
