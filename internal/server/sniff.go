// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
)

// protocol is what a connection speaks, judged by its first bytes.
type protocol int

const (
	protoUnknown protocol = iota
	protoAMQP
	protoTLS
	protoHTTP
)

// sniffLen is enough to tell the protocols apart: it is the first word of AMQP,
// and no method of HTTP is shorter than three letters and a space.
const sniffLen = 4

// sniffed is a connection whose first bytes were read and are read again.
type sniffed struct {
	net.Conn
	first []byte
}

func (s *sniffed) Read(b []byte) (int, error) {
	if len(s.first) == 0 {
		return s.Conn.Read(b)
	}
	n := copy(b, s.first)
	s.first = s.first[n:]
	return n, nil
}

// bounded is a connection of which only so much is read, until it is let go.
type bounded struct {
	net.Conn
	left int // negative is all
}

// errTooLong ends a handshake that goes on and on.
var errTooLong = errors.New("server: the TLS handshake is too long")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return b.Conn.Read(p)
	}
	if b.left == 0 {
		return 0, errTooLong
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// sniff reads just enough of nc to tell what it speaks.
func sniff(nc net.Conn) (protocol, *sniffed, error) {
	first := make([]byte, sniffLen)
	if _, err := io.ReadFull(nc, first[:1]); err != nil {
		return protoUnknown, nil, err
	}
	s := &sniffed{Conn: nc, first: first[:1]}
	if first[0] == 0x16 { // handshake record of TLS
		return protoTLS, s, nil
	}
	if _, err := io.ReadFull(nc, first[1:]); err != nil {
		return protoUnknown, nil, err
	}
	s.first = first
	switch {
	case bytes.Equal(first, []byte("AMQP")):
		return protoAMQP, s, nil
	case isMethod(first):
		return protoHTTP, s, nil
	}
	return protoUnknown, nil, fmt.Errorf("server: neither AMQP, TLS nor HTTP: % x", first)
}

// isMethod reports whether an HTTP request may begin with b: a method is a word
// in capitals, and GET is the shortest.
func isMethod(b []byte) bool {
	for i, c := range b {
		if (c < 'A' || c > 'Z') && (c != ' ' || i < 3) {
			return false
		}
	}
	return true
}
