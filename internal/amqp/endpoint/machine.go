// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// Why a machine is done, apart from an [Error] that was sent to the peer.
var (
	// errClosed says that the peer closed the connection without an error.
	errClosed = errors.New("endpoint: the peer closed the connection")
	// errProtocol says that the peer does not speak AMQP 1.0 as we do.
	errProtocol = errors.New("endpoint: unsupported protocol header")
	// errLogin says that the peer failed to log in.
	errLogin = errors.New("endpoint: login refused")
	// errHandshake says that the peer took too long to log in and open.
	errHandshake = errors.New("endpoint: handshake took too long")
	// errIdle says that the peer was silent for too long.
	errIdle = errors.New("endpoint: idle timeout, no frame from the peer")
	// errSlow says that the peer does not read what it asked for.
	errSlow = errors.New("endpoint: the peer reads too slowly")
)

// phase is how far a connection has come.
type phase uint8

const (
	awaitHeader   phase = iota // the first protocol header
	awaitInit                  // sasl-init
	awaitResponse              // sasl-response, after a challenge
	awaitAMQP                  // the protocol header after SASL
	awaitOpen
	running
	done
)

// Machine is the protocol state of one peer. It has no goroutine, no socket and
// no clock: bytes and the time go in, calls of the App and bytes come out. It is
// not safe for concurrent use; Conn sees to that.
type Machine struct {
	app     App
	tracker Tracker // app, if it is one
	cfg     Config

	phase    phase
	err      error // why the machine is done
	closeErr error // close with this before anything else is sent
	stop     stopState

	in     []byte // the beginning of a frame whose end has not come
	paused bool   // Feed stopped before the end
	rest   []byte // what Feed was given behind that
	unread bool   // it stopped because the peer leaves our answers unread
	out    output

	started time.Time // when the handshake began
	now     time.Time // of the call that is running
	heard   time.Time // when the peer last sent anything
	spoke   time.Time // when output was last taken

	mechanism string        // chosen in sasl-init, while its response is awaited
	opened    bool          // our open was sent
	maxFrame  int           // largest frame the peer takes
	heartbeat time.Duration // longest silence the peer is to hear

	sessions table[Session] // by the peer's channel, which is ours as well
	begun    int            // sessions in it
	dirty    []*Session     // with something to flush
	ended    []ended        // links that the App has yet to be told of
	blocked  []*Link        // that saw no credit although the peer granted some
	recheck  bool           // blocked links may have become usable
	links    int
	partial  int // bytes of unfinished deliveries
	size     int // bytes of the frame that is being handled
	mem      memory

	scratch scratch
}

// scratch holds what is decoded into again and again.
type scratch struct {
	transfer    frame.Transfer
	flow        frame.Flow
	disposition frame.Disposition
	incoming    Incoming
	outcome     Outcome
	found       []report
	reply       frame.Disposition
	send        frame.Transfer
	settled     settledHead
}

// NewMachine makes the machine of a peer that connected just now.
func NewMachine(app App, cfg Config, now time.Time) *Machine {
	cfg = cfg.withDefaults()
	tracker, _ := app.(Tracker)
	return &Machine{
		app: app, tracker: tracker, cfg: cfg,
		started: now, now: now, heard: now, spoke: now,
		maxFrame: frame.MinFrameSize, heartbeat: cfg.Heartbeat,
		mem: newMemory(&cfg),
	}
}

// Feed consumes what the peer sent, in pieces of any size. After an error the
// machine is done: what Take returns is the last the peer gets. See Paused for when
// it stops before the end.
func (m *Machine) Feed(now time.Time, b []byte) error {
	m.now, m.heard = now, now
	m.paused, m.unread, m.rest = false, false, nil
	for m.phase != done && !m.paused {
		if m.stop == answering {
			m.paused = true
			break
		}
		if m.behind() {
			m.paused, m.unread = true, true
			break
		}
		if len(m.in) == 0 {
			// The usual case: frames are handled where they lie.
			n := m.need(b)
			if len(b) == 0 || n > len(b) {
				m.in = append(m.in, b...)
				b = nil
				break
			}
			if m.unit(b[:n]); !m.paused {
				b = b[n:]
			}
			continue
		}
		missing := m.need(m.in) - len(m.in)
		if missing > 0 {
			if len(b) == 0 {
				break
			}
			n := min(missing, len(b))
			m.in = append(m.in, b[:n]...)
			b = b[n:]
			continue
		}
		unit := m.in
		m.in = m.in[:0]
		if m.unit(unit); m.paused {
			m.in = unit
		}
	}
	m.rest = b
	m.measure()
	if m.recheck || m.closeErr != nil {
		m.runDeferred()
	}
	return m.err
}

// Paused reports whether Feed stopped before the end, and what is left of what it was
// given: the App had no space for a delivery, or the peer leaves our answers unread. It
// has to be fed that again, even if there is none of it, when the App may have space, or
// when Take has returned something.
func (m *Machine) Paused() (rest []byte, paused bool) { return m.rest, m.paused }

// Advance sets the time for calls that come from the App's side, and makes good
// what waited for output to be written.
func (m *Machine) Advance(now time.Time) error {
	m.now = now
	m.writtenOut()
	m.measure()
	m.runDeferred()
	return m.err
}

// Close closes the connection and tells the peer err.
func (m *Machine) Close(err error) {
	m.fail(err)
}

// Abort ends the machine because the transport broke; nobody can be told.
func (m *Machine) Abort(err error) {
	m.finish(err)
}

// runDeferred does what may not happen in the middle of a call of the App.
func (m *Machine) runDeferred() {
	m.reportEnded()
	if m.recheck {
		m.resumeBlocked()
		m.reportEnded()
	}
	if m.closeErr != nil {
		m.fail(m.closeErr)
	}
}

// need returns how many bytes the protocol header or frame at the front of b
// has, as far as that can be told from b.
func (m *Machine) need(b []byte) int {
	if m.phase == awaitHeader || m.phase == awaitAMQP {
		const magic = "AMQP"
		if n := min(len(b), len(magic)); string(b[:n]) != magic[:n] {
			return n // garbage; no need to wait for more of it
		}
		return 8
	}
	if len(b) < frame.HeaderSize {
		return frame.HeaderSize
	}
	h := frame.ParseHeader(b)
	limit := m.maxFrameIn()
	if h.Size < frame.HeaderSize || h.Size > limit {
		m.fail(Errorf(CondFramingError, "frame of %d bytes; the limit is %d", h.Size, limit))
		return 0
	}
	return int(h.Size)
}

// unit handles one protocol header or frame.
func (m *Machine) unit(b []byte) {
	switch m.phase {
	case done:
	case awaitHeader:
		m.onFirstHeader(b)
	case awaitAMQP:
		m.onSecondHeader(b)
	default:
		m.onFrame(b)
	}
	m.runDeferred()
}

// fail ends the connection because of err, which the peer is told if it got so
// far as to understand it.
func (m *Machine) fail(err error) {
	if m.phase == done {
		return
	}
	m.flush()
	if m.phase == awaitOpen || m.phase == running {
		m.sendOpen() // [AMQP 2.4.1]: close is legal only after open
		m.send(0, &frame.Close{Error: wireError(err)})
	}
	m.finish(err)
}

// finish tells the App that all is over.
func (m *Machine) finish(err error) {
	if m.phase == done {
		return
	}
	m.phase, m.err, m.in = done, err, nil
	m.blocked = nil
	reason := err
	if errors.Is(err, errClosed) {
		reason = nil
	}
	for _, s := range m.sessions.all() {
		s.drop(reason)
	}
	m.sessions, m.dirty = table[Session]{}, nil
	m.reportEnded()
	m.app.Closed(reason)
}
