// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// connection is one AMQP connection with what belongs to it: the tokens that
// were put on it and the request/response links that were opened on it.
type connection struct {
	amqp   *amqp.Conn
	socket net.Conn
	target target
	life   context.Context
	work   sync.WaitGroup // the goroutines of this connection; they end with it

	cbs     *lazyValue[*rpc]
	replies *lazyValue[*inbox] // where answers to Request arrive

	mu     sync.Mutex
	tokens map[string]*lazyValue[*grant] // by path; guarded by mu
	nodes  map[string]*lazyValue[*rpc]   // $management, by address; guarded by mu
}

// grant is a token that the peer has accepted.
type grant struct{ expires time.Time } // zero when only its maker knows

func (g *grant) usable() bool { return g.expires.IsZero() || time.Now().Before(g.expires) }

func newConnection(conn *amqp.Conn, socket net.Conn, t target, life context.Context) *connection {
	c := &connection{
		amqp: conn, socket: socket, target: t, life: life,
		cbs: newLazyValue[*rpc](), replies: newLazyValue[*inbox](),
		tokens: map[string]*lazyValue[*grant]{}, nodes: map[string]*lazyValue[*rpc]{},
	}
	if t.key != "" {
		c.work.Go(c.refreshTokens)
	}
	return c
}

func (c *connection) alive() bool {
	select {
	case <-c.amqp.Done():
		return false
	default:
		return true
	}
}

// close ends the connection. go-amqp takes its time with a peer that does not
// read; when the caller's is up, the socket is closed under it.
func (c *connection) close(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { c.socket.Close() })()
	err := c.amqp.Close()
	if isClosedPipe(err) && ctx.Err() == nil {
		return nil // the peer closed while we still wrote, which a pipe in memory reports
	}
	return err
}

// isClosedPipe reports whether a connection ended because its pipe was closed. go-amqp
// shows the reason as text only.
func isClosedPipe(err error) bool {
	ended, ok := errors.AsType[*amqp.ConnError](err)
	return ok && ended.RemoteErr == nil && ended.Error() == io.ErrClosedPipe.Error()
}

// authorize puts a token for the entity at path, unless a good one is there.
func (c *connection) authorize(ctx context.Context, path string) error {
	if !c.target.tokens() {
		return nil
	}
	c.mu.Lock()
	s, ok := c.tokens[path]
	if !ok {
		s = newLazyValue[*grant]()
		c.tokens[path] = s
	}
	c.mu.Unlock()
	_, err := s.get(ctx, (*grant).usable, func() (*grant, error) {
		return c.putToken(ctx, path)
	})
	if err != nil {
		c.forget(path)
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens[path] = s // a caller that gave up waiting for it has forgotten it
	return nil
}

// forget leaves the token for an entity to expire.
func (c *connection) forget(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tokens, path)
}

// hasToken reports whether a token was put for one of these paths.
func (c *connection) hasToken(paths []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(paths, func(path string) bool { return c.tokens[path] != nil })
}

// authorized opens what needs tokens for some paths. A token is for the entity that has the
// path when it is put, and not for one that is made later with the same name. So a refusal is
// believed of new tokens only.
func authorized[T any](ctx context.Context, c *connection, paths []string, open func() (T, error)) (T, error) {
	old := c.hasToken(paths)
	for {
		for _, path := range paths {
			if err := c.authorize(ctx, path); err != nil {
				var none T
				return none, err
			}
		}
		v, err := open()
		if !old || !errors.Is(translate(err), ErrUnauthorized) {
			return v, err
		}
		old = false
		for _, path := range paths {
			c.forget(path)
		}
	}
}

func (c *connection) putToken(ctx context.Context, path string) (*grant, error) {
	node, err := c.cbs.get(ctx, (*rpc).usable, func() (*rpc, error) { return openRPC(ctx, c, names.CBS) })
	if err != nil {
		return nil, err
	}
	audience := c.target.audience(path)
	token, expires := c.target.token(audience, time.Now())
	until := "0" // as the other clients say of a token they did not make
	if !expires.IsZero() {
		until = strconv.FormatInt(expires.Unix(), 10)
	}
	_, err = node.call(ctx, &amqp.Message{
		Value: token,
		ApplicationProperties: map[string]any{
			names.Operation: names.PutToken,
			"type":          names.TokenSAS,
			"name":          audience,
			"expiration":    until,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("put token: %w", err)
	}
	return &grant{expires}, nil
}

// refreshTokens replaces every token well before it expires, as long as the
// connection lives. A failure is left alone: the next round comes in time, and
// if none succeeds the peer closes the links, whose users then see why.
func (c *connection) refreshTokens() {
	ticker := time.NewTicker(tokenRefresh)
	defer ticker.Stop()
	for {
		select {
		case <-c.amqp.Done():
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(c.life, tokenRefresh/10)
		for _, path := range c.granted() {
			c.refresh(ctx, path)
		}
		cancel()
	}
}

func (c *connection) refresh(ctx context.Context, path string) {
	c.mu.Lock()
	s := c.tokens[path]
	c.mu.Unlock()
	if s == nil {
		return // forgotten meanwhile
	}
	anew := func(*grant) bool { return false }
	_, _ = s.get(ctx, anew, func() (*grant, error) { return c.putToken(ctx, path) })
}

func (c *connection) granted() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	paths := make([]string, 0, len(c.tokens))
	for path := range c.tokens {
		paths = append(paths, path)
	}
	return paths
}

// management returns the request/response links of an entity.
func (c *connection) management(ctx context.Context, entity string) (*rpc, error) {
	address := entity + names.ManagementSuffix
	return c.node(ctx, address, []string{entity, address})
}

// node returns the request/response links of an address, for which tokens for some paths
// are put when they are opened.
func (c *connection) node(ctx context.Context, address string, needs []string) (*rpc, error) {
	c.mu.Lock()
	s, ok := c.nodes[address]
	if !ok {
		s = newLazyValue[*rpc]()
		c.nodes[address] = s
	}
	c.mu.Unlock()
	return s.get(ctx, (*rpc).usable, func() (*rpc, error) {
		return authorized(ctx, c, needs, func() (*rpc, error) { return openRPC(ctx, c, address) })
	})
}

// link is a sender or a receiver on a session of its own, so that ending the
// session ends it for certain, even in the middle of an attach.
type link struct {
	conn     *connection
	session  *amqp.Session
	sender   *amqp.Sender   // one of the two
	receiver *amqp.Receiver // is set
	polled   *polled        // of a link for polls
	broken   atomic.Bool
}

func (l *link) usable() bool { return !l.broken.Load() && l.conn.alive() }

// closeTimeout bounds how long tidying up waits for a peer that says nothing.
const closeTimeout = 2 * time.Second

// close ends the link permanently.
func (l *link) close(ctx context.Context) error {
	l.broken.Store(true)
	return endSession(ctx, l.session)
}

// endSession ends a session also when ctx has ended already.
func endSession(ctx context.Context, s *amqp.Session) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return s.Close(ctx)
}

// unlessClosed passes a new link on, or closes it if its owner was closed while it
// was attached.
func unlessClosed(closed *atomic.Bool) func(*link, error) (*link, error) {
	return func(l *link, err error) (*link, error) {
		if err != nil || !closed.Load() {
			return l, err
		}
		_ = l.close(l.conn.life) // no caller waits for it
		return nil, ErrClosed
	}
}

// openSender attaches a sender to address.
func (c *connection) openSender(ctx context.Context, address string, o *amqp.SenderOptions) (*link, error) {
	s, err := c.amqp.NewSession(ctx, nil)
	if err != nil {
		return nil, err
	}
	sender, err := s.NewSender(ctx, address, o)
	if err != nil {
		_ = endSession(ctx, s) // the reason above is the one that counts
		return nil, err
	}
	return &link{conn: c, session: s, sender: sender}, nil
}

// openReceiver attaches a receiver to address.
func (c *connection) openReceiver(ctx context.Context, address string, o *amqp.ReceiverOptions) (*link, error) {
	s, err := c.amqp.NewSession(ctx, nil)
	if err != nil {
		return nil, err
	}
	receiver, err := s.NewReceiver(ctx, address, o)
	if err != nil {
		_ = endSession(ctx, s) // as above
		return nil, err
	}
	return &link{conn: c, session: s, receiver: receiver}, nil
}
