// SPDX-License-Identifier: Apache-2.0

//go:build linux

package disk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/client"
)

const hubName = "events"

// hubPut makes or changes the event hub: each of its two partitions keeps so many
// megabytes.
func (b *broker) hubPut(ctx context.Context, megabytes int) {
	b.t.Helper()
	body := fmt.Sprintf(`{"partitionCount": 2, "maxPartitionSizeInMegabytes": %d}`, megabytes)
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+b.Addr+"/api/v1/hubs/"+hubName, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.SetBasicAuth("root", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(resp.Body); err != nil {
		b.t.Fatal(err)
	}
	if resp.StatusCode/100 != 2 {
		b.t.Fatalf("put the hub: %s\n%s", resp.Status, answer.String())
	}
}

// event is the body of event n.
func event(n uint64) []byte {
	b := bytes.Repeat([]byte{byte(n)}, 24<<10)
	binary.BigEndian.PutUint64(b, n)
	return b
}

// publisher sends numbered events to partition 0 and knows which were acknowledged.
type publisher struct {
	b    *broker
	next uint64   // number of the next event
	sent []uint64 // acknowledged, in order
}

// untilFull sends until the disk is full.
func (p *publisher) untilFull(ctx context.Context) {
	p.b.t.Helper()
	c := p.b.connect(ctx)
	s, err := c.OpenSender(ctx, hubName+"/Partitions/0", nil)
	if err != nil {
		p.b.t.Fatal(err)
	}
	for range 10_000 {
		err := s.Send(ctx, &client.Message{Body: event(p.next)})
		if err == nil {
			p.sent = append(p.sent, p.next)
		}
		p.next++
		if isFull(err) {
			return
		}
		if err != nil {
			p.b.t.Fatalf("send: %v\n%s", err, p.b.lastWords())
		}
	}
	p.b.t.Fatalf("the disk is never full\n%s", p.b.lastWords())
}

// admitted sends one event as soon as that is possible again.
func (p *publisher) admitted(ctx context.Context) {
	p.b.t.Helper()
	c := p.b.connect(ctx)
	s, err := c.OpenSender(ctx, hubName+"/Partitions/0", nil)
	if err != nil {
		p.b.t.Fatal(err)
	}
	for {
		err := s.Send(ctx, &client.Message{Body: event(p.next)})
		if err == nil {
			p.sent = append(p.sent, p.next)
		}
		p.next++
		switch {
		case err == nil:
			return
		case !isFull(err) && !errors.Is(err, client.ErrBusy):
			p.b.t.Fatalf("send: %v\n%s", err, p.b.lastWords())
		case ctx.Err() != nil:
			p.b.t.Fatalf("sends are not admitted again: %v\n%s", err, p.b.lastWords())
		}
	}
}

// check reads the partition: it has the last acknowledged events, each once and in order,
// and nothing that was rejected. It returns how many there are.
func (p *publisher) check(ctx context.Context) int {
	p.b.t.Helper()
	c := p.b.connect(ctx)
	r, err := c.OpenEventReader(ctx, hubName, "0", nil)
	if err != nil {
		p.b.t.Fatalf("read: %v\n%s", err, p.b.lastWords())
	}
	defer r.Close()
	last := p.sent[len(p.sent)-1]
	var got []uint64
	var seq client.SeqNo
	for len(got) == 0 || got[len(got)-1] != last {
		events, err := r.Receive(ctx, 100)
		if err != nil {
			p.b.t.Fatalf("read after %d events: %v\n%s", len(got), err, p.b.lastWords())
		}
		for _, e := range events {
			if len(got) > 0 && e.SeqNo != seq+1 {
				p.b.t.Fatalf("event %d follows %d", e.SeqNo, seq)
			}
			n := binary.BigEndian.Uint64(e.Body)
			if !bytes.Equal(e.Body, event(n)) {
				p.b.t.Fatalf("event %d has another body than was sent", e.SeqNo)
			}
			seq, got = e.SeqNo, append(got, n)
		}
	}
	if want := p.sent[max(0, len(p.sent)-len(got)):]; fmt.Sprint(want) != fmt.Sprint(got) {
		p.b.t.Fatalf("read %v, acknowledged %v", got, want)
	}
	return len(got)
}

// process joins the consumer group of the hub, handles what there is in partition 0, and
// leaves. It makes a hundred checkpoints.
func (p *publisher) process(ctx context.Context, id string) {
	p.b.t.Helper()
	g := p.b.connect(ctx).Group(hubName, "$Default")
	m, err := g.Join(ctx, client.MemberOptions{ID: id})
	if err != nil {
		p.b.t.Fatalf("join: %v\n%s", err, p.b.lastWords())
	}
	var grants []client.Grant
	for len(grants) == 0 {
		a, err := m.Next(ctx)
		if err != nil {
			p.b.t.Fatalf("wait for partitions: %v\n%s", err, p.b.lastWords())
		}
		grants = a.Grants
	}
	for _, grant := range grants {
		for i := range client.SeqNo(100) {
			n := i * client.SeqNo(len(p.sent)-1) / 99
			if grant.Partition != "0" {
				break
			}
			if n <= grant.Checkpoint {
				continue
			}
			each, err := g.Checkpoint(ctx, []client.Checkpoint{{Partition: "0", Epoch: grant.Epoch, SeqNo: n}})
			if err != nil || each[0] != nil {
				p.b.t.Fatalf("checkpoint %d: %v %v\n%s", n, err, each, p.b.lastWords())
			}
		}
	}
	if err := m.Leave(ctx); err != nil {
		p.b.t.Fatalf("leave: %v\n%s", err, p.b.lastWords())
	}
}

// A full disk stops senders of events, readers and processors go on. Less retention makes space again, and
// every restart works.
func TestFullDiskWithHub(t *testing.T) {
	needMounts(t)
	t.Parallel()
	d := newDisk(t, 160<<20)
	ctx := t.Context()
	b := d.start()
	b.hubPut(ctx, 1000)
	p := &publisher{b: b}
	p.untilFull(ctx)
	all := p.check(ctx)
	if all != len(p.sent) {
		t.Errorf("read %d events, %d were acknowledged and none is to be dropped", all, len(p.sent))
	}
	t.Logf("%d events on %d MiB", all, d.used()>>20)
	p.process(ctx, "first")
	for i := range 3 { // processes that come and go
		p.process(ctx, fmt.Sprint("process ", i))
	}

	b.Kill()
	d.take(1)
	b = d.start()
	p.b = b
	if n := p.check(ctx); n != all {
		t.Errorf("after a kill on a full disk %d events, want %d", n, all)
	}
	p.process(ctx, "after the kill")

	b.hubPut(ctx, 2)
	p.admitted(ctx)
	if n := p.check(ctx); n >= all {
		t.Errorf("with 2 MB for each partition %d events are left, of %d", n, all)
	}
	d.giveBack()
	b.stop()
	b = d.start()
	p.b = b
	p.check(ctx)
	b.stop()
}
