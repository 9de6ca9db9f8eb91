// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/azure/outbox"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
)

// SenderCredit is the credit that Azure gives a sender. The JavaScript SDK gives up if
// it has none a second after the attach.
const SenderCredit = 1000

// authTimeout is how long Azure waits for a connection to put its first token.
const authTimeout = 20 * time.Second

// Conn is one connection. Everything in it belongs to the connection's context,
// except what has a lock or says otherwise.
type Conn struct {
	svc    *Service
	peer   Peer
	do     func(func()) // endpoint.Conn.Do
	close  func(error)  // endpoint.Conn.Close
	known  func()       // endpoint.Conn.Known
	log    *slog.Logger
	ctx    context.Context // ends with the connection
	cancel context.CancelCauseFunc
	helper sync.WaitGroup // what Go runs

	out  *outbox.Box
	pool requestPool

	host    string // what the peer calls us
	client  string // what it calls itself, once it has opened
	opened  bool
	sending broker.SenderOptions
	grants  grants
	member  *budget.Member // what the connection makes the process hold
	mem     budget.Counter // charges member for what belongs to the connection's context
	links   map[*endpoint.Link]*attachment
	// replyLinks are those of links on which the peer receives replies.
	replyLinks replyLinks
	parts      []Links                                    // beside the service's personalities; nil while it has none of one
	cbs        struct{ requests, replies *endpoint.Link } // at most one of each
	// unsynced is the memory of the peer's deliveries that wait for the broker.
	unsynced *outbox.Unsynced
	// asked is the link that unsynced was last asked for, and arrived how many messages its
	// delivery becomes.
	asked   *endpoint.Link
	arrived int
	// watched are the queues and topics whose changes we are notified of.
	watched map[string]struct{}
	// watchMost is how many of them there are when the next look is due at which
	// are needed.
	watchMost int
	// reviewing is set while a review is on its way.
	reviewing atomic.Bool
}

// Node is what a link is attached to.
type Node interface {
	// Transfer takes a delivery from the peer.
	Transfer(in *endpoint.Incoming)
	// Credit is called when the peer's credit changed, or when it drains.
	Credit()
	// Disposition takes what the peer says about deliveries it got.
	Disposition(o *endpoint.Outcome)
	// Check reports why the link cannot stay: its user has lost the right to it,
	// or the entity is another by now.
	Check() error
	// Paths are those of the entities that Check looks at.
	Paths() []string
	// Detached is the last call.
	Detached()
}

// Event is a result that Post brings into the connection's context.
type Event = outbox.Event

// Storer is a node that stores what it gets: each delivery is charged before Transfer,
// which takes over the charge with Conn.TakeCharge.
type Storer interface {
	Node
	// Messages returns how many messages a delivery becomes while it is stored, at least one.
	Messages(d endpoint.Arriving) int
}

// Tracker is a node that wants to know how far its deliveries have come; see
// endpoint.Tracker.
type Tracker interface {
	Node
	Sent(ref uint64)
	Unsent(ref uint64)
}

// attachment is the value of a link: its node, and what else the node is.
type attachment struct {
	node    Node
	tracker Tracker // nil if it is none
	storer  Storer  // nil if it is none
}

func newConn(ctx context.Context, s *Service, ec *endpoint.Conn, peer Peer) *Conn {
	c := &Conn{
		svc:   s,
		peer:  peer,
		do:    ec.Do,
		close: ec.Close,
		known: ec.Known,
		log:   s.log.With("peer", ec.RemoteAddr().String()),
		links: map[*endpoint.Link]*attachment{},

		replyLinks: replyLinks{},
		parts:      make([]Links, len(s.personalities)),
		watched:    map[string]struct{}{},
	}
	c.peer.AuthTimeout = cmp.Or(peer.AuthTimeout, authTimeout)
	// What the connection has under way when it is asked to stop is finished first.
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.member = s.memory.Enter()
	c.mem = budget.NewCounter(c.member.Account)
	ec.Restrict(c.member.Account)
	c.unsynced = outbox.NewUnsynced(c.member.Unsynced(), c.do, ec.Resume)
	c.sending.Unsynced = c.member.Unsynced()
	c.out = outbox.New(c.do, c.unsynced, func(e *Event) {
		if p, ok := e.Value.(*parting); ok { // for a dynamic node
			c.member.Release(p.charge)
			p.isLost()
		}
	})
	c.pool.init(c)
	c.grants.init(c)
	return c
}

// finish runs after the connection's context is over, so that nothing else
// touches c any more: it waits for the helpers and gives back what they opened.
func (c *Conn) finish() {
	c.cancel(errGone)
	for _, p := range c.parts {
		if p != nil {
			p.Stop()
		}
	}
	c.helper.Wait()
	c.out.Close() // deliveries that no link takes any more go back
	for _, p := range c.parts {
		if p != nil {
			p.Closed()
		}
	}
	c.unwatchAll()
	c.unsynced.Close()
	c.mem.Close()
	c.member.Leave()
}

// Context ends with the connection.
func (c *Conn) Context() context.Context { return c.ctx }

// Log returns the log of the connection.
func (c *Conn) Log() *slog.Logger { return c.log }

// Do runs fn in the connection's context, unless the connection is over by then. It may
// be called from any goroutine and never blocks.
func (c *Conn) Do(fn func()) { c.do(fn) }

// Go runs fn on a goroutine that is waited for before Links.Closed.
func (c *Conn) Go(fn func()) { c.helper.Go(fn) }

// Post hands an event to its handler, in the connection's context and with others that
// have come meanwhile; on the caller's goroutine, without its handler, if the connection
// is over. It may be called from any goroutine and never blocks.
func (c *Conn) Post(e Event) { c.out.Post(e) }

// Sending is how the peer sends: who it is, and what is known about its software.
func (c *Conn) Sending() broker.SenderOptions { return c.sending }

// Memory is the account of what the peer makes the process hold.
func (c *Conn) Memory() *budget.Member { return c.member }

// Counter charges Memory for what belongs to the connection's context.
func (c *Conn) Counter() *budget.Counter { return &c.mem }

// Unsynced is the account of messages of the peer that are not durable yet.
func (c *Conn) Unsynced() *budget.Account { return c.unsynced.Account() }

// TakeCharge returns what Unsynced was charged for the delivery that a Storer was just
// given. It is put into the event that answers the delivery, or given back.
func (c *Conn) TakeCharge() int64 { return c.unsynced.Take() }

// Arrived returns how many messages the delivery becomes that a Storer was just given.
func (c *Conn) Arrived() int { return c.arrived }

// Unpack is [wire.Unpack] of a delivery that becomes so many messages. If they are many, it waits
// for a turn of the owner, which is the path of their entity, or the key of the peer if that is not
// known: until then the delivery is in memory as it came.
func (c *Conn) Unpack(dst []*message.Message, in *endpoint.Incoming, owner string, messages int) ([]*message.Message, error) {
	defer c.svc.broker.TurnFor(owner, messages).End()
	return wire.Unpack(dst, in)
}

// Require reports that the peer may not do want at a path, in the words of the service.
func (c *Conn) Require(want access.Rights, path string) error { return c.grants.require(want, path) }

// Right is that by which a peer may do something, for what outlives its connection.
type Right struct {
	Holder string      // names the rule; see access.Grant
	Ends   time.Time   // zero is never
	Holds  func() bool // may be called from any goroutine
}

// Right returns that by which the peer may do want at a path: of several, the one that ends
// last. False is that it may not.
func (c *Conn) Right(want access.Rights, path string) (Right, bool) {
	return c.grants.right(want, path)
}

// Opened learns what the peer is. An unnamed host is fine: it only appears in
// texts.
func (c *app) Opened(open *frame.Open) error {
	product, _ := wire.LookupText(open.Properties, "product")
	if version, ok := wire.LookupText(open.Properties, "version"); ok && product != "" {
		c.client = product + " " + version
	}
	c.client, c.opened = kept(cmp.Or(c.client, product, open.ContainerID)), true
	c.connected()
	c.host = kept(cmp.Or(open.Hostname, "localhost"))
	if product == "MSGolangClient" {
		// Its zero value of a header is written as priority 0, which its user
		// never asked for.
		c.sending.ZeroPriorityUnset = true
	}
	c.grants.expectToken()
	return nil
}

// kept returns as much of a text of the peer as is kept for texts and lists, in memory of
// its own.
func kept(text string) string {
	if len(text) > limits.ClientText {
		text = strings.ToValidUTF8(text[:limits.ClientText], "")
	}
	return strings.Clone(text)
}

// Attach finds what the peer wants to be attached to.
func (c *app) Attach(l *endpoint.Link) {
	if err := c.attach(l); err != nil {
		l.Refuse(c.WireError(l.Address(), err))
	}
}

func (c *Conn) attach(l *endpoint.Link) error {
	remote := l.Remote()
	sends := remote.Role == frame.Sender // from the peer's side
	switch addr := l.Address(); {
	case remote.Coordinator != nil:
		return endpoint.Errorf(endpoint.CondNotImplemented, "Transactions are not supported by this broker yet.")
	case wire.IsCBS(addr):
		return c.attachCBS(l)
	case wire.IsManagement(addr):
		return c.attachManagement(l)
	case !sends && remote.Source != nil && remote.Source.Dynamic:
		return c.attachDynamicNode(l)
	case sends && wire.IsDynamicNode(addr):
		return c.attachToDynamicNode(l)
	case sends && remote.Target != nil && remote.Target.Dynamic:
		return endpoint.Errorf(endpoint.CondNotImplemented, "A temporary node is made by a dynamic source, not by a target.")
	case sends && addr == "" && remote.Target != nil:
		return c.attachAnonymousSender(l)
	default:
		path := wire.PathOf(addr)
		return c.linksAt(path).Attach(l, path)
	}
}

// find returns the ID of the entity at a path and the index of the personality that has
// it. What none has is the first's to explain.
func (s *Service) find(path string) (personality int, id uint64, err error) {
	for i, p := range s.personalities {
		id, e := p.Find(path)
		if e == nil {
			return i, id, nil
		}
		if i == 0 {
			err = e
		}
	}
	return 0, 0, err
}

// linksOf returns what the connection has of a personality.
func (c *Conn) linksOf(personality int) Links {
	if c.parts[personality] == nil {
		c.parts[personality] = c.svc.personalities[personality].Open(c)
	}
	return c.parts[personality]
}

// linksAt returns what the connection has of the personality that has a path.
func (c *Conn) linksAt(path string) Links {
	i, _, _ := c.svc.find(path)
	return c.linksOf(i)
}

// Attached notes what l is attached to. From now on its events go there. A link is
// detached with Link.Detach; its node is let go of when the endpoint tells that the link
// is gone: by Detached, and nowhere else.
func (c *Conn) Attached(l *endpoint.Link, n Node) {
	a := &attachment{node: n}
	a.tracker, _ = n.(Tracker)
	a.storer, _ = n.(Storer)
	l.Value = a
	c.links[l] = a
	if to, ok := n.(*replies); ok {
		c.replyLinks.add(to)
	}
	for _, path := range n.Paths() {
		c.watch(path)
	}
}

// Sent implements endpoint.Tracker.
func (c *app) Sent(l *endpoint.Link, ref uint64) {
	if a, ok := l.Value.(*attachment); ok && a.tracker != nil {
		a.tracker.Sent(ref)
	}
}

// Unsent implements endpoint.Tracker.
func (c *app) Unsent(l *endpoint.Link, ref uint64) {
	if a, ok := l.Value.(*attachment); ok && a.tracker != nil {
		a.tracker.Unsent(ref)
	}
}

// Reserve charges a delivery that the broker will be asked to store.
func (c *app) Reserve(l *endpoint.Link, d endpoint.Arriving) bool {
	if a, ok := l.Value.(*attachment); ok && a.storer != nil {
		c.asked, c.arrived = l, a.storer.Messages(d)
		return c.unsynced.Reserve(d.Size(), c.arrived)
	}
	return true
}

// Transfer hands a delivery to the link's node.
func (c *app) Transfer(l *endpoint.Link, in *endpoint.Incoming) {
	if a, ok := l.Value.(*attachment); ok {
		a.node.Transfer(in)
	}
}

// Credit tells the link's node of new credit.
func (c *app) Credit(l *endpoint.Link) {
	if a, ok := l.Value.(*attachment); ok {
		a.node.Credit()
	}
}

// Disposition tells the link's node what the peer decided.
func (c *app) Disposition(l *endpoint.Link, o *endpoint.Outcome) {
	if a, ok := l.Value.(*attachment); ok {
		a.node.Disposition(o)
	}
}

// Detached releases the link's node, whichever side closed the link.
func (c *app) Detached(l *endpoint.Link, err error) {
	if a, ok := c.links[l]; ok {
		delete(c.links, l)
		if to, ok := a.node.(*replies); ok {
			c.replyLinks.remove(to)
		}
		a.node.Detached()
	}
	if c.asked == l {
		c.asked = nil
		c.unsynced.Cancel()
	}
	if err != nil {
		c.log.Debug("link detached", "link", l.Name(), "err", err)
	}
}

// Closed ends what the connection has under way; Service.Serve waits for it.
func (c *app) Closed(err error) {
	c.grants.stop()
	c.cancel(errGone)
}
