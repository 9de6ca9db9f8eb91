// SPDX-License-Identifier: Apache-2.0

package server

import (
	"log/slog"
	"net/http"
	"sync"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/budget"
)

// minMemory is what peers need at least for a broker to be of use: a connection has a
// quarter of it, which has to hold the largest message.
const minMemory = 16 << 20

// unauthenticatedReserve is what is kept free of the memory for connections that have not
// logged in: with less of it, the oldest of them give way to those that come.
const unauthenticatedReserve = 16 * budget.UnauthenticatedLimit

// memory returns what peers may make the process hold. By default it is half of what
// the process may use: the other half is for the index of the messages, the cache and
// the garbage that has not been collected yet.
func (c Config) memory(log *slog.Logger) *budget.Process {
	limit := int64(c.Limits.Memory)
	if limit == 0 {
		limit = budget.Memory() / 2
	}
	if limit > 0 && limit < minMemory {
		log.Warn("little memory for clients: raise limits.memory, GOMEMLIMIT or the limit of the control group",
			"bytes", limit, "used", int64(minMemory))
		limit = minMemory
	}
	p := budget.NewProcess(budget.Limits{Process: limit, Unsynced: c.MaxUnsynced, Stored: int64(c.Limits.StoredMemory)})
	log.Debug("memory for clients", "bytes", p.Usage().Limit, "stored", p.Usage().StoredLimit)
	return p
}

// maxUnauthenticated returns how many connections may have proved nothing yet. Each has its
// share of the memory for unauthenticated peers whatever the others do; a quarter of that is for
// those that were shut out and have not given theirs back yet.
func maxUnauthenticated(configured int, memory *budget.Process) int {
	return min(configured, int(memory.Unauthenticated().Limit()/budget.UnauthenticatedLimit*3/4))
}

const (
	// connectionCost is about what a connection by HTTP takes that does nothing.
	connectionCost = 8 << 10
	// tlsCost is about what TLS takes for a connection.
	tlsCost = 16 << 10
	// webSocketCost is about what a WebSocket takes beside the request that it began with, all
	// of which net/http keeps: a goroutine, and buffers.
	webSocketCost = 16 << 10
	// headerCost is how often a header is there: as it came, and as its lines.
	headerCost = 2
	// headerLineCost is about what a line of a header takes besides its bytes: an
	// entry in a map and its strings.
	headerLineCost = 128
	// bodyCost is how often a body is there: as it came, and as what it means.
	bodyCost = 2
)

// charges is what a connection by HTTP makes the process hold. Its methods may be
// called from any goroutine: net/http reads the header, and waits for the client to
// leave, in others than the handler's.
type charges struct {
	member *budget.Member

	mu      sync.Mutex
	counter budget.Counter // guarded by mu
	request int64          // of counter, for the request under way; guarded by mu
	meter   headerMeter    // guarded by mu
	beside  int64          // of counter, for TLS; zero until the peer is known; guarded by mu
	left    bool           // guarded by mu
}

// enter begins to charge a connection that has just come; false means that there is no
// memory for it.
func (c *charges) enter(p *budget.Process) bool {
	c.member = p.Enter()
	c.counter = budget.NewCounter(c.member.Account)
	return c.counter.Take(connectionCost)
}

// prove says whose key the peer has shown. From the first on, what its connection takes beside
// requests is charged, which is n bytes.
func (c *charges) prove(g access.Grant, n int64) {
	c.member.Prove(budget.Owner{Key: g.Holder(), Entity: g.Entity, Manager: g.ManagesNamespace()})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counter.Resized()
	if c.beside == 0 && !c.left {
		c.beside = n
		c.counter.Add(n)
	}
}

// used returns what is charged now, but for what prove has charged.
func (c *charges) used() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counter.Used() - c.beside
}

// leave gives everything back. A handler may still be about to end; it is charged
// nothing any more.
func (c *charges) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	c.counter.Close()
	c.member.Leave()
}

// header charges what was read, if it belongs to the header of a request. If there is no
// memory for it, it returns the status that tells why: the header is longer than its
// sender may send at all, or others use the memory. Otherwise it returns 0.
func (c *charges) header(b []byte) (refusal int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cost := c.meter.cost(b)
	switch {
	case c.takeForRequest(cost):
		return 0
	case connectionCost+c.request+cost > c.member.Limit():
		return http.StatusRequestHeaderFieldsTooLarge
	}
	return http.StatusServiceUnavailable
}

// body charges n bytes of a body, and reports whether there was memory for them.
func (c *charges) body(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.takeForRequest(bodyCost * int64(n))
}

// hold charges n bytes of what is made for the answer, and reports whether there was
// memory for them.
func (c *charges) hold(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.takeForRequest(n)
}

// short reports whether there is no memory for an answer of a useful size.
func (c *charges) short() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.left && c.counter.Short()
}

func (c *charges) takeForRequest(n int64) bool {
	if n == 0 {
		return true
	}
	if c.left || !c.counter.Take(n) {
		return false
	}
	c.request += n
	return true
}

// begin says that the header of a request is complete.
func (c *charges) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.meter = headerMeter{done: true}
}

// end says that the handler of a request is done. What comes next is a header.
func (c *charges) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.left {
		c.counter.Release(c.request)
	}
	c.request, c.meter = 0, headerMeter{}
}

// output charges n bytes of an answer, which is there already, until written is called.
func (c *charges) output(n int64) (written func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return func() {}
	}
	c.counter.Add(n)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.left {
			c.counter.Release(n)
		}
	}
}

// headerMeter finds out what the header of a request will take, from its bytes as they
// come: a line of five bytes is an entry in a map as is one of a thousand. A header ends
// with an empty line; empty lines before it are allowed.
type headerMeter struct {
	begun bool // a line has had something in it
	full  bool // this line has something in it
	done  bool // the header has ended
}

func (m *headerMeter) cost(b []byte) int64 {
	var cost int64
	for _, c := range b {
		if m.done {
			break
		}
		cost += headerCost
		switch {
		case c == '\n' && m.begun && !m.full:
			m.done = true
		case c == '\n':
			cost += headerLineCost
			m.full = false
		case c != '\r':
			m.begun, m.full = true, true
		}
	}
	return cost
}
