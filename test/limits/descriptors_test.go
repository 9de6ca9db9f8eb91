// SPDX-License-Identifier: Apache-2.0

//go:build linux

package limits

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
)

// A process with 128 descriptors gets 200
// unauthenticated connections while its store needs new files.
func TestUnauthenticatedPeersTakeNoDescriptorFromTheStore(t *testing.T) {
	b := start(t, "ulimit -n 128")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	visit := func(n int) {
		t.Helper()
		for i := range n {
			// From many addresses, each with some unauthenticated connections.
			from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i%20))}}
			nc, err := from.DialContext(ctx, "tcp", b.Addr)
			if err != nil {
				t.Fatalf("unauthenticated connection %d: %v", i, err)
			}
			t.Cleanup(func() { nc.Close() })
			if i%2 == 0 { // half of them begin to log in, and then say no more
				io.WriteString(nc, "AMQP\x03\x01\x00\x00")
			}
		}
	}
	visit(100)
	s, err := b.session(ctx)
	if err != nil {
		t.Fatalf("beside a hundred unauthenticated connections: %v\n%s", err, b.LastWords())
	}
	send, err := s.NewSender(ctx, "q", nil)
	if err != nil {
		t.Fatal(err)
	}
	visit(100)
	const count = 100 // of 100 kB: several segments
	for i := range count {
		err := send.Send(ctx, amqp.NewMessage(bytes.Repeat([]byte{byte(i)}, 100<<10)), nil)
		if err != nil {
			t.Fatalf("message %d: %v\n%s", i, err, b.LastWords())
		}
	}
	receive, err := s.NewReceiver(ctx, "q", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range count {
		m, err := receive.Receive(ctx, nil)
		if err == nil {
			err = receive.AcceptMessage(ctx, m)
		}
		if err != nil {
			t.Fatalf("receive message %d: %v\n%s", i, err, b.LastWords())
		}
	}
	// A new client that logs in is served although unauthenticated connections use
	// up the limit.
	if _, err := b.session(ctx); err != nil {
		t.Errorf("a client that comes late: %v\n%s", err, b.LastWords())
	}
}

// A soft limit below the hard one is no limit: the process raises it.
func TestSoftLimitIsRaised(t *testing.T) {
	b := start(t, "ulimit -Sn 128")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for i := range 200 {
		if _, err := b.session(ctx); err != nil {
			t.Fatalf("connection %d: %v\n%s", i, err, b.LastWords())
		}
	}
}

// The last descriptors are not used for authenticated clients either.
func TestClientsTakeNoDescriptorFromTheStore(t *testing.T) {
	b := start(t, "ulimit -n 128")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var first *amqp.Session
	in := 0
	for range 200 {
		s, err := b.session(ctx)
		if err != nil {
			continue
		}
		in++
		if first == nil {
			first = s
		}
	}
	if in < 50 || in > 64 {
		t.Errorf("%d of 200 clients were accepted, want what 128 descriptors allow", in)
	}
	send, err := first.NewSender(ctx, "q", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if err := send.Send(ctx, amqp.NewMessage(make([]byte, 100<<10)), nil); err != nil {
			t.Fatalf("message %d: %v\n%s", i, err, b.LastWords())
		}
	}
}
