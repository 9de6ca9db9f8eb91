// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/triagemq/triagemq/internal/limits"
)

// smallFrame is how many bytes of payload a frame of a WebSocket has that is worth its
// cost: fewer than any performative of AMQP but the heartbeat takes.
const smallFrame = 16

// errSmallFrames ends a connection whose frames carry next to nothing.
var errSmallFrames = errors.New("server: too many WebSocket frames without content")

// meteredWriter is a response that hands its connection over with a meter of the frames
// that come on it.
type meteredWriter struct{ http.ResponseWriter }

// Hijack returns the connection, from which also what net/http has read ahead is read
// through the meter.
func (w meteredWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	ahead, _ := rw.Reader.Peek(rw.Reader.Buffered())
	c := &meteredConn{Conn: nc, from: io.MultiReader(bytes.NewReader(bytes.Clone(ahead)), nc)}
	rw.Reader.Reset(c)
	return c, rw, nil
}

// meteredConn is a connection that carries a WebSocket, on which a peer may send few
// frames that mean nothing: empty ones, pieces of messages of a few bytes, pings. Each
// costs the library as much as a frame of AMQP, and the peer six bytes.
type meteredConn struct {
	net.Conn
	from  io.Reader
	meter frameMeter
}

// policyViolation is a close frame with the status 1008 [RFC 6455 7.4.1].
const policyViolation = "\x88\x02\x03\xf0"

// Read ends with an error, and tells the peer that it broke a rule, when there were too
// many frames without content.
func (c *meteredConn) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	if !c.meter.count(time.Now(), b[:n]) {
		c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(c.Conn, policyViolation) // it may not read any more
		return 0, errSmallFrames
	}
	return n, err
}

// frameMeter finds the frames in the bytes of a WebSocket [RFC 6455 5.2] and counts those
// with little or no content. There may be limits.SmallFrames of them at once, as many
// again in each second, and one for each frame with content.
type frameMeter struct {
	head  [14]byte // of the frame that begins
	n     int      // bytes of it
	left  uint64   // bytes of payload that follow
	spent int      // small frames, less what time has forgiven
	since time.Time
}

// count reports whether the peer may go on after these bytes.
func (m *frameMeter) count(now time.Time, b []byte) bool {
	for len(b) > 0 {
		if m.left > 0 {
			n := min(m.left, uint64(len(b)))
			m.left -= n
			b = b[n:]
			continue
		}
		m.head[m.n] = b[0]
		m.n++
		b = b[1:]
		size, ok := m.payload()
		if !ok {
			continue
		}
		isControl := m.head[0]&0x8 != 0
		m.n, m.left = 0, size
		switch {
		case size >= smallFrame && !isControl:
			m.spent = max(m.spent-1, 0) // clients may write the head of a frame by itself
		case !m.spend(now):
			return false
		}
	}
	return true
}

// payload returns how many bytes follow the header; false if it is not complete.
func (m *frameMeter) payload() (size uint64, ok bool) {
	if m.n < 2 {
		return 0, false
	}
	h, need := m.head[:m.n], 2
	if h[1]&0x80 != 0 {
		need += 4 // the masking key
	}
	switch size = uint64(h[1] & 0x7f); size {
	case 126:
		if need += 2; m.n >= need {
			size = uint64(binary.BigEndian.Uint16(h[2:]))
		}
	case 127:
		if need += 8; m.n >= need {
			size = binary.BigEndian.Uint64(h[2:])
		}
	}
	return size, m.n >= need
}

// spend counts a small frame.
func (m *frameMeter) spend(now time.Time) bool {
	if passed := now.Sub(m.since); passed >= time.Second {
		m.spent -= min(m.spent, limits.SmallFrames*int(passed/time.Second))
		m.since = now
	}
	m.spent++
	return m.spent <= limits.SmallFrames
}
