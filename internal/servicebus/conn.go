// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
)

// patience is how long Azure waits for a connection to put its first token.
const patience = 20 * time.Second

// conn is one connection. Everything in it belongs to the connection's context,
// except what has a lock or says otherwise.
type conn struct {
	svc    *Service
	peer   Peer
	do     func(func()) // endpoint.Conn.Do
	close  func(error)  // endpoint.Conn.Close
	known  func()       // endpoint.Conn.Known
	log    *slog.Logger
	ctx    context.Context // ends with the connection
	cancel context.CancelCauseFunc
	helper sync.WaitGroup // loaders, requests, waiting receivers

	out    outbox
	loader loader
	desk   desk

	host    string // what the peer calls us
	client  string // what it calls itself, once it has opened
	opened  bool
	sending broker.SenderOptions
	grants  grants
	member  *budget.Member // what the connection makes the process hold
	mem     budget.Counter // charges member for what belongs to the connection's context
	links   map[*endpoint.Link]node
	cbs     struct{ requests, replies *endpoint.Link } // at most one of each
	// unsynced is the memory of the peer's deliveries that wait for the broker.
	unsynced  unsynced
	receivers int // among links
	// opening holds the receivers whose broker end is not in our hands yet.
	opening map[*receiver]struct{}
	// unsent holds the receivers with deliveries that never left.
	unsent map[*receiver]struct{}
	// watched are the queues and topics whose changes we are told of.
	watched map[string]struct{}
	// watchMost is how many of them there are when the next look is due at which
	// are needed.
	watchMost int
	// reviewing is set while a review is on its way.
	reviewing atomic.Bool
}

// node is what a link is attached to.
type node interface {
	// transfer takes a delivery from the peer.
	transfer(in *endpoint.Incoming)
	// credit is told that the peer's credit changed, or that it drains.
	credit()
	// disposition takes what the peer says about deliveries it got.
	disposition(o *endpoint.Outcome)
	// check reports why the link cannot stay: its user has lost the right to it,
	// or the entity is another by now.
	check() error
	// paths are those of the entities that check looks at.
	paths() []string
	// detached is the last call.
	detached()
}

func newConn(ctx context.Context, s *Service, ec *endpoint.Conn, peer Peer) *conn {
	c := &conn{
		svc:     s,
		peer:    peer,
		do:      ec.Do,
		close:   ec.Close,
		known:   ec.Known,
		log:     s.log.With("peer", ec.RemoteAddr().String()),
		links:   map[*endpoint.Link]node{},
		opening: map[*receiver]struct{}{},
		unsent:  map[*receiver]struct{}{},
		watched: map[string]struct{}{},
	}
	c.peer.Patience = cmp.Or(peer.Patience, patience)
	// What the connection has under way when it is told to stop is finished first.
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.member = s.memory.Enter()
	c.mem = budget.NewCounter(c.member.Account)
	ec.Restrict(c.member.Account)
	unsyncedAll := s.memory.Unsynced()
	account := unsyncedAll.Child(unsyncedAll.Limit() / connectionShare)
	c.unsynced = unsynced{account: account, do: c.do, resume: ec.Resume}
	c.out.init(c.do, c.unsynced.settle, func(e *event) {
		if e.kind == eventForward {
			c.member.Release(e.charge)
			return
		}
		account.Release(e.charge)
	})
	c.loader.init(c)
	c.desk.init(c)
	c.grants.init(c)
	return c
}

// finish runs after the connection's context is over, so that nothing else
// touches c any more: it waits for the helpers and gives back what they opened.
func (c *conn) finish() {
	c.cancel(errGone)
	c.loader.close()
	c.helper.Wait()
	for r := range c.opening {
		r.close()
	}
	c.out.close() // deliveries that no link takes any more go back
	c.giveBack()  // and those that were on their way to the peer
	c.unwatchAll()
	c.unsynced.close()
	c.mem.Close()
	c.loader.release()
	c.member.Leave()
}

// giveBack returns what links were given and the peer was not sent.
func (c *conn) giveBack() {
	for r := range c.unsent {
		r.giveBack()
	}
	clear(c.unsent)
}

// Opened learns what the peer is. An unnamed host is fine: it only appears in
// texts.
func (c *conn) Opened(open *frame.Open) error {
	c.host = cmp.Or(open.Hostname, "localhost")
	if product, ok := lookupText(open.Properties, "product"); ok && product == "MSGolangClient" {
		// Its zero value of a header is written as priority 0, which its user
		// never asked for.
		c.sending.ZeroPriorityUnset = true
	}
	c.grants.expectToken()
	return nil
}

// lookupText finds a text in an encoded map of an open or attach.
func lookupText(encoded []byte, key string) (string, bool) {
	v, ok := lookup(encoded, key)
	if !ok {
		return "", false
	}
	return v.Str()
}

func lookup(encoded []byte, key string) (codec.Value, bool) {
	if len(encoded) == 0 {
		return codec.Value{}, false
	}
	r := codec.NewReader(encoded)
	v := r.Value()
	if r.Err() != nil {
		return codec.Value{}, false
	}
	return v.Lookup(key)
}

// Attach finds what the peer wants to be attached to.
func (c *conn) Attach(l *endpoint.Link) {
	if err := c.attach(l); err != nil {
		l.Refuse(c.wireError(l.Address(), err))
	}
}

func (c *conn) attach(l *endpoint.Link) error {
	remote := l.Remote()
	sends := remote.Role == frame.Sender // from the peer's side
	switch addr := l.Address(); {
	case remote.Coordinator != nil:
		return endpoint.Errorf(endpoint.CondNotImplemented, "Transactions are not supported by this broker yet.")
	case isCBS(addr):
		return c.attachCBS(l)
	case isManagement(addr):
		return c.attachManagement(l)
	case !sends && isRecall(addr):
		return c.attachRecalls(l)
	case !sends && remote.Source != nil && remote.Source.Dynamic:
		return c.attachTemporary(l)
	case sends && isTemporary(addr):
		return c.attachToTemporary(l)
	case sends && remote.Target != nil && remote.Target.Dynamic:
		return endpoint.Errorf(endpoint.CondNotImplemented, "A temporary node is made by a dynamic source, not by a target.")
	case sends && addr == "" && remote.Target != nil:
		return c.attachRelay(l)
	case sends:
		return c.attachSender(l)
	default:
		return c.attachReceiver(l)
	}
}

// attached notes what l is attached to. From now on its events go there.
func (c *conn) attached(l *endpoint.Link, n node) {
	l.Value = n
	c.links[l] = n
	for _, path := range n.paths() {
		c.watch(path)
	}
}

// detach closes a link of our own accord. Its node is let go of like that of any other
// link, when the endpoint tells that it is gone: by Detached, and nowhere else.
func (c *conn) detach(l *endpoint.Link, err error) { l.Detach(err) }

// tracked is a node that wants to know how far its deliveries have come; see
// endpoint.Tracker.
type tracked interface {
	sent(ref uint64)
	unsent(ref uint64)
}

// Sent implements endpoint.Tracker.
func (c *conn) Sent(l *endpoint.Link, ref uint64) {
	if n, ok := l.Value.(tracked); ok {
		n.sent(ref)
	}
}

// Unsent implements endpoint.Tracker.
func (c *conn) Unsent(l *endpoint.Link, ref uint64) {
	if n, ok := l.Value.(tracked); ok {
		n.unsent(ref)
	}
}

func nodeOf(l *endpoint.Link) node {
	n, _ := l.Value.(node)
	return n
}

// Room charges a delivery that the broker will be asked to store.
func (c *conn) Room(l *endpoint.Link, size int) bool {
	switch nodeOf(l).(type) {
	case *sender, *relay:
		return c.unsynced.room(size)
	}
	return true
}

// Transfer hands a delivery to the link's node.
func (c *conn) Transfer(l *endpoint.Link, in *endpoint.Incoming) {
	if n := nodeOf(l); n != nil {
		n.transfer(in)
	}
}

// Credit tells the link's node of new credit.
func (c *conn) Credit(l *endpoint.Link) {
	if n := nodeOf(l); n != nil {
		n.credit()
	}
}

// Disposition tells the link's node what the peer decided.
func (c *conn) Disposition(l *endpoint.Link, o *endpoint.Outcome) {
	if n := nodeOf(l); n != nil {
		n.disposition(o)
	}
}

// Detached lets go of the link's node, whoever closed the link.
func (c *conn) Detached(l *endpoint.Link, err error) {
	if n, ok := c.links[l]; ok {
		delete(c.links, l)
		n.detached()
	}
	if err != nil {
		c.log.Debug("link detached", "link", l.Name(), "err", err)
	}
}

// Closed ends what the connection has under way; Service.Serve waits for it.
func (c *conn) Closed(err error) {
	c.grants.stop()
	c.cancel(errGone)
}
