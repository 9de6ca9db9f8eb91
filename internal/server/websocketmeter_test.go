// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/limits"
)

// webFrame is a masked frame of a WebSocket with the first byte and so much payload.
func webFrame(first byte, size int) []byte {
	b := []byte{first}
	switch {
	case size < 126:
		b = append(b, 0x80|byte(size))
	case size < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(size))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(size))
	}
	return append(append(b, 0, 0, 0, 0), make([]byte, size)...)
}

// Frames are counted however they are cut into reads; those with content do not count.
func TestFrameMeter(t *testing.T) {
	const empty, piece, ping = 0x00, 0x02, 0x89
	many := func(n int, frames ...[]byte) []byte { return bytes.Repeat(bytes.Join(frames, nil), n) }
	for _, c := range []struct {
		name string
		in   []byte
		goes bool
	}{
		{"empty pieces", many(limits.SmallFrames, webFrame(empty, 0)), true},
		{"too many empty pieces", many(limits.SmallFrames+1, webFrame(empty, 0)), false},
		{"too many pieces of a byte", many(limits.SmallFrames+1, webFrame(piece, 1)), false},
		{"too many pings", many(limits.SmallFrames+1, webFrame(ping, 125)), false},
		{"many with content", many(4*limits.SmallFrames, webFrame(piece, smallFrame)), true},
		{"heads and bodies", many(4*limits.SmallFrames, webFrame(piece, 8), webFrame(piece, 40)), true},
		{"long ones that contain what looks like empty ones", many(20, webFrame(piece, 300), webFrame(piece, 70_000)), true},
	} {
		for _, step := range []int{1, 7, 4096} {
			var m frameMeter
			now, goes := time.Now(), true
			for b := c.in; len(b) > 0 && goes; b = b[min(step, len(b)):] {
				goes = m.count(now, b[:min(step, len(b))])
			}
			if goes != c.goes {
				t.Errorf("%s, in steps of %d: it may go on: %v, want %v", c.name, step, goes, c.goes)
			}
		}
	}
	var m frameMeter
	now := time.Now()
	for range 100 { // time forgives
		if !m.count(now, many(limits.SmallFrames, webFrame(ping, 0))) {
			t.Fatal("pings at the rate that is allowed are refused")
		}
		now = now.Add(time.Second)
	}
}

// A peer that sends empty pieces is told that it broke a rule, also if they came together
// with its request.
func TestEmptyWebSocketFramesEndTheConnection(t *testing.T) {
	r := strict(t, nil)
	head := "GET " + pathWebSocket + " HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"
	for _, ahead := range []int{0, 3} { // pieces that come with the request, of which the last is cut
		frames := append(webFrame(0x02, 0), bytes.Repeat(webFrame(0x00, 0), 10*limits.SmallFrames)...)
		cut := 4 * ahead
		nc, br := r.raw("%s%s", head, frames[:cut])
		res, err := http.ReadResponse(br, nil)
		if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("the request for a WebSocket is answered %v, %v", res, err)
		}
		_, _ = nc.Write(frames[cut:]) // the broker may close before it has read all
		got, err := io.ReadAll(io.LimitReader(br, 100))
		if !bytes.HasPrefix(got, []byte(policyViolation)) {
			t.Errorf("%d pieces without content: it is told %q, %v, want %q", 10*limits.SmallFrames, got, err, policyViolation)
		}
		nc.Close()
	}
}

// A header that is too long is answered with 431, before and after authentication, with and without TLS.
func TestLongHeadersAreRefused(t *testing.T) {
	strict, dev := strict(t, nil), run(t, nil) // the second has a certificate
	key := "Authorization: " + basic(*strict.up.NewKey) + "\r\n"
	long, lines := "X-Long: "+strings.Repeat("x", 100<<10), strings.Repeat("a:\r\n", 30<<10)
	for how, to := range map[string]struct {
		key  string
		dial func() net.Conn
	}{
		"plain text": {key, strict.dial},
		"TLS":        {"", func() net.Conn { return tls.Client(dev.dial(), dev.tlsConfig()) }},
	} {
		for what, header := range map[string]string{"one long line": long, "many lines": lines} {
			for _, known := range []bool{false, true} {
				nc := to.dial()
				br := bufio.NewReader(nc)
				if known { // the connection is, from its first request on
					fmt.Fprintf(nc, "GET /api/v1/queues HTTP/1.1\r\nHost: localhost\r\n%s\r\n", to.key)
					if got := status(t, br); got != http.StatusOK {
						t.Fatalf("with a key: %d", got)
					}
				}
				fmt.Fprintf(nc, "GET /api/v1/queues HTTP/1.1\r\nHost: localhost\r\n%s", header)
				if got := status(t, br); got != http.StatusRequestHeaderFieldsTooLarge {
					t.Errorf("%s by %s, known: %v: %d, want 431", what, how, known, got)
				}
				nc.Close()
			}
		}
	}
}
