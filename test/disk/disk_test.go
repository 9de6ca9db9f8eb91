// SPDX-License-Identifier: Apache-2.0

//go:build linux

package disk

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A full disk stops only senders, and only as
// long as it is full. No restart is needed, and every restart works.
func TestFullDiskStopsSendersOnly(t *testing.T) {
	needMounts(t)
	t.Parallel()
	for _, megabytes := range []int64{60, 200, 500} {
		t.Run(fmt.Sprintf("%d MB", megabytes), func(t *testing.T) {
			t.Parallel()
			d := newDisk(t, megabytes<<20)
			ctx := t.Context()
			// Larger messages on a larger disk: their number decides how long it takes.
			l := &ledger{t: t, size: func(n uint64) int { return min(mixed(n)*int(megabytes)/60, 250<<10) }}
			b := d.start()
			began := time.Now()
			step := func(what string) { t.Logf("%5.1f s: %s", time.Since(began).Seconds(), what) }

			// A burst ends with a clear rejection, and an idle broker writes nothing.
			l.burst(ctx, b, 0)
			t.Logf("%d messages on %d MiB", l.total(waiting), d.used()>>20)
			b.rest()
			step("full and at rest")

			// Another process uses the rest. Messages can still be dead-lettered and
			// settled, and when most are settled, sends are admitted again.
			d.take(1)
			l.mustSettle(ctx, b, queues[0], 100, deadLetter)
			l.refuseProperties(ctx, b, queues[1])
			l.mustConsume(ctx, b, 0.3, 0, 1)
			l.mustSettle(ctx, b, queues[2], 100, deadLetter)
			l.mustConsume(ctx, b, 0.7, everyQueue...)
			l.admitted(ctx, b)
			step("admitted again")

			// A kill while it is full and in use, and another process uses space before,
			// meanwhile and when it is down.
			d.takeSome()
			b = l.killInUse(ctx, d, b)
			l.check(ctx, b)
			step("killed")

			// It stops and starts cleanly on a full disk, too.
			l.burst(ctx, b, 0)
			b.stop()
			d.take(1)
			b = d.start()
			l.check(ctx, b)
			d.giveBack()
			step("stopped and started")

			// When all is consumed, the store is small and sends are admitted.
			l.drain(ctx, b)
			l.small(ctx, d, b)
			l.admitted(ctx, b)
			b.stop()
		})
	}
}

// A7: a backlog of many small messages, each of which is part of a snapshot.
// See the comment of the package for how to make it longer.
func TestFullDiskWithLongBacklog(t *testing.T) {
	needMounts(t)
	t.Parallel()
	limit, size := 0, int64(60<<20)
	if s := os.Getenv("TRIAGEMQ_DISK_MESSAGES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("TRIAGEMQ_DISK_MESSAGES: %v", err)
		}
		limit, size = n, int64(n)*500
	}
	d := newDisk(t, size)
	ctx := t.Context()
	l := &ledger{t: t, size: tiny}
	b := d.start()
	began := time.Now()
	step := func(what string) {
		t.Logf("%6.1f s: %s; %d messages wait, %d MiB used", time.Since(began).Seconds(), what, l.total(waiting), d.used()>>20)
	}
	l.burst(ctx, b, limit)
	step("sent")
	if n := l.total(waiting); n < limit {
		t.Fatalf("%d messages fill the disk, want %d", n, limit)
	}
	d.take(1)
	l.burst(ctx, b, 0)
	step("full")
	b.rest()
	step("at rest")
	b.Kill()
	b = d.start()
	step("killed and started")
	l.check(ctx, b)
	step("all there")
	l.mustConsume(ctx, b, 0.7, everyQueue...)
	step("consumed a part")
	l.admitted(ctx, b)
	step("sends admitted again")
	d.giveBack()
	l.drain(ctx, b)
	step("drained")
	l.small(ctx, d, b)
	l.admitted(ctx, b)
	step("small again")
	b.stop()
}

// A7: what waits is scattered over the whole disk, because one of several
// queues is not consumed. To free the space of the others, messages must be
// moved, and that needs space, too.
func TestFullDiskWithScatteredBacklog(t *testing.T) {
	needMounts(t)
	t.Parallel()
	for _, megabytes := range []int64{60, 500} {
		t.Run(fmt.Sprintf("%d MB", megabytes), func(t *testing.T) {
			t.Parallel()
			d := newDisk(t, megabytes<<20)
			ctx := t.Context()
			l := &ledger{t: t, size: func(n uint64) int { return min(mixed(n)*int(megabytes)/60, 250<<10) }}
			b := d.start()
			l.burst(ctx, b, 0)
			d.take(1)
			l.mustConsume(ctx, b, 1, everyQueue[1:]...)
			l.admitted(ctx, b)
			t.Logf("admitted again with %d messages on %d MiB", l.total(waiting), d.used()>>20)
			l.check(ctx, b)
			b.stop()
		})
	}
}

// killInUse loads a broker until its disk is full, and for a moment longer,
// kills it, and returns the next one. Meanwhile another process uses the free
// space.
func (l *ledger) killInUse(ctx context.Context, d *disk, b *broker) *broker {
	l.t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var filling crew
	for range senders {
		filling.Go(func() error { return l.sendUntilFull(ctx, b, 0) })
	}
	d.takeSome()
	if err := filling.wait(); err != nil {
		l.t.Fatalf("%v\n%s", err, b.lastWords())
	}
	// From here on it is full; every failure is because of the kill.
	var load crew
	load.Go(func() error {
		s, done, err := l.open(ctx, b)
		if err != nil {
			return err
		}
		defer done()
		for {
			if err := l.send(ctx, s); err != nil && !isFull(err) {
				return err
			}
		}
	})
	for q := range queues {
		how := complete
		if q == 3 {
			how = deadLetter
		}
		load.Go(func() error { return l.settle(ctx, b, queues[q], l.count(q, waiting), how) })
	}
	<-time.After(time.Duration(rand.IntN(500)) * time.Millisecond)
	d.take(1)
	<-time.After(time.Duration(rand.IntN(500)) * time.Millisecond)
	b.alive()
	b.Kill()
	_ = load.wait() // each was cut off
	d.giveBack()
	d.take(1)
	b = d.start()
	d.giveBack()
	return b
}

// small fails the test if a store without messages does not become small.
func (l *ledger) small(ctx context.Context, d *disk, b *broker) {
	l.t.Helper()
	most := min(200<<20, d.size/2) // what a drained store may take, as in test/drained.sh
	for range 60 {
		if d.used() <= most {
			return
		}
		b.alive()
		<-time.After(500 * time.Millisecond)
	}
	l.t.Fatalf("%d bytes of the disk are in use although there is no message, want at most %d\n%s", d.used(), most, b.files())
}

// refuseProperties fails the test unless an abandon with properties is rejected
// while there is no space for it, and the lock stays valid.
func (l *ledger) refuseProperties(ctx context.Context, b *broker, queue string) {
	l.t.Helper()
	r, err := b.connect(ctx).OpenReceiver(ctx, queue, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	defer r.Close()
	ms, err := r.Receive(ctx, 1)
	if err != nil {
		l.t.Fatal(err)
	}
	err = r.Abandon(ctx, ms[0], map[string]any{"why": "the disk is full"})
	if err == nil || !strings.Contains(err.Error(), "disk is full") {
		l.t.Fatalf("abandon with properties: %v, want a rejection because the disk is full", err)
	}
	ns, err := l.received(ms, completing)
	if err == nil {
		err = r.Complete(ctx, ms[0])
	}
	if err != nil {
		l.t.Fatalf("complete after that: %v\n%s", err, b.lastWords())
	}
	l.set(absent, ns...)
}

// A burst in batches is faster than the first snapshot, which begins meanwhile: what
// settling takes is kept free all the same, and nothing but senders waits.
func TestFullDiskAfterBurstInBatches(t *testing.T) {
	needMounts(t)
	t.Parallel()
	for _, megabytes := range []int64{150, 500} {
		t.Run(fmt.Sprintf("%d MB", megabytes), func(t *testing.T) {
			t.Parallel()
			d := newDisk(t, megabytes<<20)
			ctx := t.Context()
			l := &ledger{t: t, size: tiny}
			b := d.start()
			began := time.Now()
			step := func(what string) {
				t.Logf("%6.1f s: %s; %d messages wait, %d MiB used", time.Since(began).Seconds(), what, l.total(waiting), d.used()>>20)
			}
			l.burst(ctx, b, 0)
			step("full")
			d.take(1)
			l.mustConsume(ctx, b, 0.5, everyQueue...)
			step("consumed a half")
			b.Kill()
			b = d.start()
			step("killed and started")
			l.drain(ctx, b)
			step("drained")
			l.admitted(ctx, b)
			b.stop()
		})
	}
}
