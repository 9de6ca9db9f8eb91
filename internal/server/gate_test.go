// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"testing"
)

// from is a connection from an address that records whether it was closed.
type from struct {
	net.Conn
	ip     string
	closed bool
}

func (f *from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.ip), Port: 1} }
func (f *from) Close() error         { f.closed = true; return nil }

func TestGate(t *testing.T) {
	g := newGate(6, 2)
	enter := func(ip string) (*from, *ticket) {
		t.Helper()
		c := &from{ip: ip}
		ticket, ok := g.enter(c)
		if !ok {
			t.Fatalf("%s was not let in", ip)
		}
		return c, ticket
	}
	speaker, speakerTicket := enter("10.0.0.1")
	speakerTicket.speaks()
	silent, silentTicket := enter("10.0.0.1")
	elsewhere, _ := enter("10.0.0.2")
	third, thirdTicket := enter("::ffff:10.0.0.1") // the same address, written otherwise
	if speaker.closed || !silent.closed || third.closed || elsewhere.closed {
		t.Errorf("the third of an address closed: speaker %v, silent %v, third %v, elsewhere %v; want the silent one alone",
			speaker.closed, silent.closed, third.closed, elsewhere.closed)
	}
	silentTicket.leave()

	speakerTicket.known()
	enter("10.0.0.1")
	if speaker.closed || third.closed {
		t.Error("who is known still counts as a stranger")
	}
	thirdTicket.speaks()
	_, last := enter("10.0.0.1")
	last.speaks()
	enter("10.0.0.3")
	if _, ok := g.enter(&from{ip: "10.0.0.4"}); ok {
		t.Error("more than the limit were let in")
	}
	speakerTicket.leave()
	enter("10.0.0.4")
	if n := len(g.strangers[thirdTicket.ip]); n != 2 {
		t.Errorf("%d strangers of one address, want 2", n)
	}
}
