// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/vfs"
)

// limited gives the clients of a bench so much memory.
func (b *bench) limited(bytes int64) *bench {
	return servingWith(b.broker, budget.NewProcess(budget.Limits{Process: bytes}), slog.New(slog.DiscardHandler))
}

// wantNothingHeld checks that all that was charged has come back.
func (b *bench) wantNothingHeld(t *testing.T, ps ...*peerOf) {
	t.Helper()
	for _, p := range ps {
		p.Close()
		<-p.served
	}
	if u := b.memory.Usage(); u.Used != 0 {
		t.Errorf("all have left, and %+v is charged", u)
	}
}

// Messages in temporary nodes that nobody reads are
// charged to the connection that has the nodes.
func TestTemporaryNodesAreCharged(t *testing.T) {
	const limit = 64 << 20 // a connection has 16 MiB of it
	b := start(t).limited(limit)
	reader, writer := b.login(t, rootRule), b.login(t, rootRule)
	s := reader.session()
	var addrs []string
	var rs []*amqp.Receiver
	for range 20 {
		r, err := s.NewReceiver(reader.ctx(), "", &amqp.ReceiverOptions{DynamicAddress: true, Credit: -1})
		if err != nil {
			t.Fatal(err)
		}
		addrs, rs = append(addrs, r.Address()), append(rs, r)
	}
	relay, err := writer.session().NewSender(writer.ctx(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range 200 {
		m := amqp.NewMessage(make([]byte, 500_000))
		m.Properties = &amqp.MessageProperties{To: &addrs[i%len(addrs)]}
		if err := relay.Send(writer.ctx(), m, nil); err != nil {
			wantCondition(t, "send", err, "amqp:resource-limit-exceeded")
			refused++
		}
	}
	if u := b.memory.Usage(); refused < 150 || u.Known > limit/4+2<<20 {
		t.Errorf("%d of 200 were refused, and %d MB are held", refused, u.Known>>20)
	}
	// A peer that reads frees memory.
	if err := rs[0].IssueCredit(10); err != nil {
		t.Fatal(err)
	}
	if _, err := rs[0].Receive(reader.ctx(), nil); err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		if err := r.Close(reader.ctx()); err != nil {
			t.Fatal(err)
		}
	}
	if u := b.memory.Usage(); u.Known > 4<<20 {
		t.Errorf("the nodes are gone, and %d MB are held", u.Known>>20)
	}
	b.wantNothingHeld(t, reader, writer)
}

// Number 12: replies that nobody takes. The peer gets no more of them made than its
// connection may hold, and others go on.
func TestRepliesWithoutCreditAreCharged(t *testing.T) {
	const limit = 64 << 20
	b := start(t).limited(limit)
	p := b.login(t, rootRule)
	for range 40 {
		p.send("q", amqp.NewMessage(make([]byte, 200_000)))
	}
	greedy := b.login(t, listenRule)
	s := greedy.session()
	out, err := s.NewSender(greedy.ctx(), "q/$management", nil)
	if err != nil {
		t.Fatal(err)
	}
	replyTo := "replies"
	in, err := s.NewReceiver(greedy.ctx(), "q/$management", &amqp.ReceiverOptions{TargetAddress: replyTo, Credit: -1})
	if err != nil {
		t.Fatal(err)
	}
	most := int64(0)
	for range 60 {
		err := out.Send(greedy.ctx(), &amqp.Message{
			Properties:            &amqp.MessageProperties{MessageID: "m", ReplyTo: &replyTo},
			ApplicationProperties: map[string]any{"operation": "com.microsoft:peek-message", "server-timeout": uint32(100)},
			Value:                 map[string]any{"from-sequence-number": int64(0), "message-count": int32(100)},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, b.memory.Usage().Known)
	}
	if most > limit/4+4<<20 {
		t.Errorf("%d MB of replies are held", most>>20)
	}
	wantCondition(t, "the link for replies", closedWith(t, in), "amqp:resource-limit-exceeded")
	// Somebody else is served meanwhile.
	r := p.rpc("q/$management")
	r.manage("peek-message", map[string]any{"from-sequence-number": int64(0), "message-count": int32(10)}, 200)
	b.wantNothingHeld(t, p, greedy)
}

// An anonymous sender keeps what it sends to open. Many links with many addresses are charged
// to the connection, and one that has used up its memory goes on with fewer at a time.
func TestAddressesOfAnonymousSendersAreCharged(t *testing.T) {
	const limit = 16 << 20 // a connection has 4 MiB of it
	b := start(t).limited(limit)
	if _, err := b.broker.CreateQueue(t.Context(), entity.Queue{Name: "abcdefg"}); err != nil {
		t.Fatal(err)
	}
	p := b.login(t, sendRule)
	s := p.session()
	most := int64(0)
	for range 110 {
		relay, err := s.NewSender(p.ctx(), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		before := b.memory.Usage().Known
		for i := range 64 { // the same queue, in other letters
			to := []byte("abcdefg")
			for bit := range 6 {
				if i>>bit&1 == 1 {
					to[bit] -= 'a' - 'A'
				}
			}
			m := amqp.NewMessage([]byte("x"))
			addr := string(to)
			m.Properties = &amqp.MessageProperties{To: &addr}
			if err := relay.Send(p.ctx(), m, nil); err != nil {
				t.Fatal(err)
			}
		}
		after := b.memory.Usage().Known
		if most = max(most, after); most < limit/8 && after-before < 64*256 {
			t.Fatalf("64 addresses are charged with %d bytes", after-before)
		}
	}
	if most > limit/4+64<<10 || most < limit/5 {
		t.Errorf("at most %d bytes were charged, a connection may have %d", most, limit/4)
	}
	b.wantNothingHeld(t, p)
}

// closedWith waits for the end of a link.
func closedWith(t *testing.T, r *amqp.Receiver) error {
	t.Helper()
	_, err := r.Receive(t.Context(), nil)
	return err
}

// Numbers 12 and 14: a peer that reads no answers of $cbs can still renew its token, and
// makes us hold next to nothing.
func TestUnreadTokenRepliesDoNotBlockRenewal(t *testing.T) {
	b := start(t)
	p := b.anonymous(t, b.keeper)
	s := p.session()
	out, err := s.NewSender(p.ctx(), "$cbs", nil)
	if err != nil {
		t.Fatal(err)
	}
	replyTo := "cbs"
	if _, err := s.NewReceiver(p.ctx(), "$cbs", &amqp.ReceiverOptions{TargetAddress: replyTo, Credit: -1}); err != nil {
		t.Fatal(err)
	}
	put := func(token string) {
		t.Helper()
		err := out.Send(p.ctx(), &amqp.Message{
			Properties:            &amqp.MessageProperties{MessageID: "m", ReplyTo: &replyTo},
			ApplicationProperties: map[string]any{"operation": "put-token", "type": tokenSAS, "name": "amqp://ns.example/q"},
			Value:                 token,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 3 * limits.Replies {
		put("nonsense")
	}
	if u := b.memory.Usage(); u.Unauthenticated > budget.UnauthenticatedLimit {
		t.Errorf("an unauthenticated connection uses %d bytes", u.Unauthenticated)
	}
	for range 3 * limits.Replies {
		put(access.SignToken(sendRule, "amqp://ns.example/q", time.Now().Add(time.Hour)))
	}
	p.send("q", &amqp.Message{Value: "x"})
	b.wantNothingHeld(t, p)
}

// Properties to modify are charged until they are written: a frame of them becomes a
// megabyte, and there may be one for each message that a peer has locked. Without space
// the settlement is refused, and the lock holds.
func TestPropertiesToModifyAreCharged(t *testing.T) {
	b := start(t).limited(64 << 20)
	p := b.login(t, rootRule)
	p.send("q", &amqp.Message{Value: "x"})
	r := p.receiver("q", peekLock())
	m := p.next(r)
	large := amqp.Annotations{}
	for i := range 5000 {
		large[fmt.Sprint(i)] = nil
	}
	modify := func() error {
		return r.ModifyMessage(p.ctx(), m, &amqp.ModifyMessageOptions{DeliveryFailed: true, Annotations: large})
	}
	// Other connections of the key leave a little.
	other := b.memory.Enter()
	other.Prove(budget.Owner{Key: rootRule.Name, Manager: true})
	n := 32<<20 - b.memory.Usage().Known - 200<<10 // a key has half
	other.Charge(n)
	wantCondition(t, "modify without memory", modify(), "amqp:resource-limit-exceeded")
	other.Release(n)
	other.Leave()
	got := b.login(t, rootRule)
	again := got.rpc("q/$management").manage("peek-message", map[string]any{"from-sequence-number": int64(0), "message-count": int32(10)}, 200)
	if len(entries(t, again, "messages")) != 1 {
		t.Error("the message is gone")
	}
	b.wantNothingHeld(t, p, got)
}

// A message that is larger than a reply may be otherwise is charged before it is read for
// one: a few requests for it would take more memory than there is.
func TestLargeMessageInAReplyIsCharged(t *testing.T) {
	b := start(t).limited(16 << 20) // a connection has 4 MiB of it, a reply 256 KiB
	if _, err := b.broker.CreateQueue(t.Context(), entity.Queue{Name: "large", MaxMessageSizeInKilobytes: 1024}); err != nil {
		t.Fatal(err)
	}
	p := b.login(t, rootRule)
	p.send("large", amqp.NewMessage(make([]byte, 900_000)))
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c, first, finish := b.service.Unserved(t.Context(), endpoint.NewConn(ours, endpoint.Config{}))
	member := c.Memory()
	member.Prove(budget.Owner{Key: "key"})
	body := wire.Result("from-sequence-number", codec.Long(0), "message-count", codec.Int(10))
	request, err := message.Parse((&message.Draft{Value: &body}).Encode(nil))
	if err != nil {
		t.Fatal(err)
	}
	op, _ := first.Operation("com.microsoft:peek-message")
	op.LargeReply = false // what a reply may take otherwise is another test's
	begin, used := op.Begin, int64(0)
	op.Begin = func(k *azure.Call) (azure.Run, error) {
		run, err := begin(k)
		return func(ctx context.Context) (codec.Value, error) {
			defer func() { used = member.Used() }()
			return run(ctx)
		}, err
	}
	if status := c.Try(t.Context(), op, "large", request); status != 200 || used < 900_000 {
		t.Errorf("status %d, with %d bytes charged", status, used)
	}
	member.Charge(5 << 20)
	if status := c.Try(t.Context(), op, "large", request); status != 503 {
		t.Errorf("status %d: it is read without memory for it", status)
	}
	member.Release(5 << 20)
	finish()
	r := p.rpc("large/$management")
	r.manage("peek-message", map[string]any{"from-sequence-number": int64(0), "message-count": int32(10)}, 200)
	b.wantNothingHeld(t, p)
}

// The messages of a reply are written once, where they stay: what is charged for a reply
// has to be what it takes.
func TestReplyIsWrittenOnce(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	const n, size = 20, 200_000
	for range n {
		p.send("q", amqp.NewMessage(make([]byte, size)))
	}
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c, first, finish := b.service.Unserved(t.Context(), endpoint.NewConn(ours, endpoint.Config{}))
	defer finish()
	c.Memory().Prove(budget.Owner{Key: "key"})
	body := wire.Result("from-sequence-number", codec.Long(0), "message-count", codec.Int(100))
	request, err := message.Parse((&message.Draft{Value: &body}).Encode(nil))
	if err != nil {
		t.Fatal(err)
	}
	op, _ := first.Operation("com.microsoft:peek-message")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if status := c.Try(t.Context(), op, "q", request); status != 200 {
		t.Fatalf("status %d", status)
	}
	runtime.ReadMemStats(&after)
	// Once as the reply, and once or twice as they are read.
	if made := after.TotalAlloc - before.TotalAlloc; made < n*size || made > 7*n*size/2 {
		t.Errorf("%d bytes were allocated for a reply of %d", made, n*size)
	}
}

// What a delivery is charged with before it is taken over comes back when it is refused
// with its link, and when the link ends while it waits. Or connections that do nothing
// any more would keep the memory that all senders share.
func TestDeliveryThatIsNotTakenOverIsNotCharged(t *testing.T) {
	attach := func(p *rawPeer) {
		p.say(&frame.Attach{Name: "s", Role: frame.Sender, Source: &frame.Source{}, Target: &frame.Target{Address: "q"}})
		synctest.Wait()
	}
	body := amqp.NewMessage(make([]byte, 10_000))
	payload, err := body.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	transfer := func(p *rawPeer, f *frame.Transfer) {
		b := append(f.Append(frame.AppendHeader(nil, frame.TypeAMQP, 0)), payload...)
		frame.SetSize(b, 0)
		p.write(b)
		synctest.Wait()
	}
	t.Run("refused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t)
			p := b.raw(t, 100)
			p.reads()
			attach(p)
			transfer(p, &frame.Transfer{HasDeliveryID: true, DeliveryTag: make([]byte, 33)}) // too long
			if u := b.memory.Usage(); u.Unsynced != 0 {
				t.Errorf("%d bytes are charged for a delivery that was refused", u.Unsynced)
			}
		})
	})
	t.Run("waiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t)
			p := b.raw(t, 100)
			p.reads()
			attach(p)
			account := b.opened.last().Unsynced()
			account.Charge(account.Limit()) // the disk is slow
			transfer(p, &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("1")})
			if u := b.memory.Usage(); u.Waiting != 1 {
				t.Fatalf("%d charges wait, want that of the delivery", u.Waiting)
			}
			if err := b.broker.DeleteQueue(t.Context(), "q"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if u := b.memory.Usage(); u.Waiting != 0 {
				t.Errorf("the peer is not read from because of a link that is gone")
			}
			account.Release(account.Limit())
			synctest.Wait()
			if u := b.memory.Usage(); u.Unsynced != 0 {
				t.Errorf("%d bytes are charged for a delivery whose link is gone", u.Unsynced)
			}
		})
	})
}

// A batch is charged with the messages that it becomes before it is taken apart: one of many
// empty messages waits for memory as a large one does.
func TestMessagesOfABatchAreChargedBeforeTheyAreRead(t *testing.T) {
	for name, frames := range map[string]int{"in one frame": 1, "in several": 4} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const messages = 1000
				b := start(t)
				p := b.raw(t, 100)
				p.reads()
				p.say(&frame.Attach{Name: "s", Role: frame.Sender, Source: &frame.Source{}, Target: &frame.Target{Address: "q"}})
				synctest.Wait()
				account := b.opened.last().Unsynced()
				const left = 100 << 10
				account.Charge(account.Limit() - left)
				batch := bytes.Repeat([]byte{0x00, 0x53, 0x75, 0xa0, 0x00}, messages)
				for i := range frames {
					part := batch[i*len(batch)/frames : (i+1)*len(batch)/frames]
					f := &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("1"), MessageFormat: uint32(message.FormatBatch), More: i < frames-1}
					raw := append(f.Append(frame.AppendHeader(nil, frame.TypeAMQP, 0)), part...)
					frame.SetSize(raw, 0)
					p.write(raw)
				}
				synctest.Wait()
				if u := b.memory.Usage(); u.Waiting != 1 {
					t.Errorf("%d charges wait, want that of the batch", u.Waiting)
				}
				account.Release(account.Limit() - left)
				synctest.Wait()
				if u := b.memory.Usage(); u.Unsynced != 0 {
					t.Errorf("%d bytes are charged for a batch that is stored", u.Unsynced)
				}
				if rt, err := b.broker.Runtime(t.Context(), "q"); err != nil || rt.Counts.Active != messages {
					t.Errorf("%d messages are stored, want %d; %v", rt.Counts.Active, messages, err)
				}
			})
		})
	}
}

// Messages that were scheduled are charged until they are durable, also if the client does
// not wait for so long.
func TestScheduledMessagesAreChargedUntilTheyAreDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &hangingDisk{FS: vfs.NewMem(), again: make(chan struct{})}
		b := serving(brokertest.StartOn(t, disk))
		if _, err := b.broker.CreateQueue(t.Context(), entity.Queue{Name: "q"}); err != nil {
			t.Fatal(err)
		}
		p := b.login(t, rootRule)
		mgmt := p.rpc("q/$management")
		disk.hangs.Store(true)
		raw, err := (&amqp.Message{
			Annotations: amqp.Annotations{"x-opt-scheduled-enqueue-time": hence(time.Hour)},
			Data:        [][]byte{make([]byte, 10_000)},
		}).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		reply := mgmt.call("com.microsoft:schedule-message", map[string]any{"messages": []any{map[string]any{"message": raw}}},
			map[string]any{"com.microsoft:server-timeout": uint32(1000)})
		checkStatus(t, "schedule", reply, 408)
		if u := b.memory.Usage(); u.Unsynced < 20_000 {
			t.Errorf("%d bytes are charged for what waits for the disk", u.Unsynced)
		}
		disk.hangs.Store(false)
		close(disk.again)
		synctest.Wait()
		if u := b.memory.Usage(); u.Unsynced != 0 {
			t.Errorf("%d bytes are charged for what is on disk", u.Unsynced)
		}
	})
}

// hangingDisk does not return from a sync, while it hangs, until again is closed. It takes
// no lock meanwhile, for which others would wait: a bubble of synctest would never be idle.
type hangingDisk struct {
	vfs.FS
	hangs atomic.Bool
	again chan struct{}
}

func (d *hangingDisk) Create(name string) (vfs.File, error) { return d.file(d.FS.Create(name)) }
func (d *hangingDisk) Open(name string) (vfs.File, error)   { return d.file(d.FS.Open(name)) }

func (d *hangingDisk) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return hangingFile{f, d}, nil
}

type hangingFile struct {
	vfs.File
	disk *hangingDisk
}

func (f hangingFile) Sync() error {
	if f.disk.hangs.Load() {
		<-f.disk.again
	}
	return f.File.Sync()
}
