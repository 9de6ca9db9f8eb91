// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"strings"

	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/limits"
)

// What things cost that the machine keeps for a peer, in bytes, beyond those that came
// with them. They are rounded up: what the App keeps beside them is in it.
const (
	connectionCost = 24 << 10 // goroutines, tables, the first read buffer
	sessionCost    = 1 << 10
	linkCost       = 2 << 10
	symbolCost     = 16  // of an attach
	unsettledCost  = 96  // a delivery that we sent
	waitingCost    = 256 // a delivery that waits for a window
	answerCost     = 128 // a settlement that was not written yet
)

// memory is what the peer makes the machine hold. Things that can be refused are taken
// from the counter before they are made. Buffers grow and shrink all the time: they are
// measured at the end of each call, and charged whether there is space or not.
type memory struct {
	counter  budget.Counter
	account  *budget.Account // nil for no limit
	limit    int64           // of account
	measured int64           // part of the counter: the buffers, when they were last measured
	seen     int64           // what was charged to the account then

	reading   int // size of the read buffer
	unsettled int // size of the sessions' unsettled
	waiting   int // deliveries that wait for a window
	owed      int // settlements that were not written yet
	unpaid    int // links that were refused for lack of space and are charged all the same

	starved         bool // a link has no place for a delivery that is not settled, and no memory for one
	unauthenticated bool // the peer has proved nothing
	full            bool // the account is used up
	short           bool // it, or one above it, has little space
}

func newMemory(cfg *Config) memory {
	mem := memory{counter: budget.NewCounter(cfg.Account), account: cfg.Account, unauthenticated: cfg.Unauthenticated, reading: minRead}
	if mem.account != nil {
		mem.limit = mem.account.Limit()
	}
	mem.counter.Add(connectionCost - minRead)
	return mem
}

// known says that the peer has proved something: it may do what others may. Its account
// has got another limit.
func (m *Machine) known() {
	m.mem.unauthenticated = false
	if m.mem.account != nil {
		m.mem.counter.Resized()
		m.mem.limit = m.mem.account.Limit()
	}
}

// measure charges what the buffers hold now.
func (m *Machine) measure() {
	mem := &m.mem
	n := int64(mem.reading + cap(m.in) + cap(m.out.bytes) + cap(m.out.spare) + m.out.queue +
		mem.unsettled + mem.waiting*waitingCost + mem.owed*answerCost)
	switch d := n - mem.measured; {
	case d > 0:
		mem.counter.Add(d)
	case d < 0:
		mem.counter.Release(-d)
	}
	mem.measured = n
	if mem.account == nil {
		return
	}
	wasFull, wasShort := mem.full, mem.short
	mem.full = mem.counter.Used() >= mem.limit
	if held := mem.counter.Charged(); held != mem.seen || mem.short {
		mem.seen = held
		mem.short = mem.counter.Scarce()
	}
	if wasFull && !mem.full || wasShort && !mem.short || mem.starved {
		m.recheck, mem.starved = true, false
	}
	if mem.full && mem.unauthenticated && m.closeErr == nil {
		m.closeErr = Errorf(CondResourceLimitExceeded, "more than %d bytes are held for a connection that has not logged in", mem.limit)
	}
}

// largeRing is from how many places on the map of unsettled deliveries grows before they are
// needed, and only if there is memory: it doubles, and has come near to being full by then.
const largeRing = 4096

// affordable returns how many of n deliveries can be sent on the link. They are kept until they
// are settled, which a peer may never do: while memory is short, or when they are many already,
// the map of them does not grow beyond what there is memory for. The links share the places
// that are free. It goes on when the peer settles some.
func (l *Link) affordable(n uint32) uint32 {
	s := l.session
	g, mem := &s.sent, &s.m.mem
	if int(n) <= g.free() || !mem.short && len(g.ring) < largeRing {
		return n
	}
	if g.trim(); int(n) <= g.free() {
		return n
	}
	if mem.counter.Available() >= int64(g.growth()*unsettledCost) {
		g.freeSlot()
		s.weigh()
		s.m.measure()
		return n
	}
	free := g.free()
	switch share := free / max(s.m.links, 1); {
	case share > 0:
		return min(n, uint32(share))
	case free > 0 && len(g.ring) < 2*s.m.links, len(g.ring) == 0: // nothing may be left to settle
		return 1
	}
	mem.starved = true
	l.blockLink()
	return 0
}

// behind reports whether the peer leaves so many of our answers unread that no more of
// what it sends is looked at. Deliveries do not count, for which it waits with credit:
// to stop reading because of them might keep a client from ever settling them.
func (m *Machine) behind() bool {
	most := m.cfg.HighOutput
	if m.mem.unauthenticated {
		most = min(most, limits.UnauthenticatedAnswers)
	}
	return m.out.answers+m.mem.owed*answerCost >= most
}

// Release gives back all that was charged; the machine is not used any more.
func (m *Machine) Release() { m.mem.counter.Close() }

// growRead reports whether the buffer for reading may have so many bytes.
func (m *Machine) growRead(size int) bool {
	if size > m.mem.reading && (m.mem.unauthenticated || m.mem.short || m.mem.full) {
		return false
	}
	m.mem.reading = size
	m.measure()
	return true
}

// maxFrameIn is the largest frame that the peer may send now.
func (m *Machine) maxFrameIn() uint32 {
	switch {
	case m.phase != running:
		return min(m.cfg.MaxFrameSize, limits.EarlyFrame)
	case m.mem.unauthenticated:
		return min(m.cfg.MaxFrameSize, limits.UnauthenticatedFrame)
	}
	return m.cfg.MaxFrameSize
}

// maxLinks is how many links the peer may have.
func (m *Machine) maxLinks() int {
	if m.mem.unauthenticated {
		return min(m.cfg.MaxLinks, limits.UnauthenticatedLinks)
	}
	return m.cfg.MaxLinks
}

// admit charges a link, whose attach had so many bytes. If there is no space for it, it
// is kept without what it asked for until the peer knows that it was refused; there are
// at most limits.RefusedLinks of those.
func (l *Link) admit(size int) error {
	m := l.session.m
	var err error
	l.cost = int64(linkCost + size + symbolCost*symbolsIn(l.remote))
	switch {
	case m.mem.unauthenticated && size > limits.UnauthenticatedAttach:
		err = Errorf(CondResourceLimitExceeded, "attach of %d bytes; before login the limit is %d", size, limits.UnauthenticatedAttach)
	case !m.mem.counter.Take(l.cost):
		err = Errorf(CondResourceLimitExceeded, "the connection holds too much memory for another link")
	default:
		return nil
	}
	r := l.remote
	l.remote = &frame.Attach{
		Name: strings.Clone(r.Name), Handle: r.Handle, Role: r.Role,
		SenderSettleMode: r.SenderSettleMode, ReceiverSettleMode: r.ReceiverSettleMode,
	}
	l.cost = int64(linkCost + len(r.Name))
	m.mem.counter.Add(l.cost)
	l.unpaid = true
	m.mem.unpaid++
	return err
}

func symbolsIn(a *frame.Attach) int {
	n := len(a.OfferedCapabilities) + len(a.DesiredCapabilities)
	if a.Source != nil {
		n += len(a.Source.Outcomes) + len(a.Source.Capabilities)
	}
	if a.Target != nil {
		n += len(a.Target.Capabilities)
	}
	if a.Coordinator != nil {
		n += len(a.Coordinator.Capabilities)
	}
	return n
}

// hold reserves memory for n more bytes of an unfinished delivery, and reports whether there
// is memory for them.
func (l *Link) hold(n int) bool {
	m := l.session.m
	have, need := cap(l.body), len(l.body)+n
	if need <= have {
		return true
	}
	size := max(need, min(2*have, int(min(l.maxMessage, uint64(m.cfg.MaxPartial)))))
	if !m.mem.counter.Take(int64(size - have)) {
		if size = need; !m.mem.counter.Take(int64(size - have)) {
			return false
		}
	}
	body := make([]byte, len(l.body), size)
	copy(body, l.body)
	l.body = body
	return true
}
