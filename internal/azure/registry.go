// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// Connection is a client that is connected.
type Connection struct {
	Peer   string // its address
	Since  time.Time
	Client string // what it calls itself, if it does
	Links  []Link
}

// Link is one of a connection's links.
type Link struct {
	Name    string
	Address string
	Role    string // sender or receiver, as the client sees it
	Credit  uint32 // messages that may still pass
}

// answerTime is how long a connection may take to say what its links are: one
// that is stuck in a write must not keep the others from being shown.
const answerTime = time.Second

// registry knows the connections that are being served.
type registry struct {
	mu    sync.Mutex
	conns map[*app]struct{} // guarded by mu
}

// app is a connection with what it is called in listings. It takes the
// place of the connection as the endpoint's App, to learn what the peer says about
// itself.
type app struct {
	*Conn
	addr  string // of the peer
	since time.Time
}

func (r *registry) enter(c *Conn, addr string) *app {
	x := &app{Conn: c, addr: addr, since: time.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conns == nil {
		r.conns = make(map[*app]struct{})
	}
	r.conns[x] = struct{}{}
	return x
}

func (r *registry) leave(x *app) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, x)
}

func (r *registry) all() []*app {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.conns))
}

// ConnectionCount returns how many are connected.
func (s *Service) ConnectionCount() int {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	return len(s.registry.conns)
}

// Connections lists who is connected, the longest first: up to top of them without the first
// skip, and how many there are. Links belong to their connection's context, so each connection
// of the page is asked for them; one that ends meanwhile or does not answer is left out.
func (s *Service) Connections(ctx context.Context, skip, top int) (page []Connection, total int) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	conns := s.registry.all()
	total = len(conns)
	slices.SortFunc(conns, func(a, b *app) int {
		return cmp.Or(a.since.Compare(b.since), strings.Compare(a.addr, b.addr))
	})
	conns = conns[min(skip, total):]
	conns = conns[:min(top, len(conns))]
	answers := make([]chan Connection, len(conns))
	for i, x := range conns {
		answers[i] = make(chan Connection, 1) // so that it need not wait for us
		x.do(func() { answers[i] <- x.describe() })
	}
	for i, x := range conns {
		select {
		case a := <-answers[i]:
			page = append(page, a)
		case <-x.ctx.Done():
		case <-ctx.Done():
		}
	}
	return page, total
}

// describe runs in the connection's context.
func (x *app) describe() Connection {
	d := Connection{Peer: x.addr, Since: x.since.UTC(), Client: x.client}
	for l := range x.links {
		link := Link{Name: l.Name(), Address: l.Address(), Role: "receiver", Credit: l.Granted()}
		if l.Remote().Role == frame.Sender {
			link.Role = "sender"
		}
		d.Links = append(d.Links, link)
	}
	slices.SortFunc(d.Links, func(a, b Link) int { return strings.Compare(a.Name, b.Name) })
	return d
}
