// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Options are the settings of a client besides the address. The zero value and nil
// are the defaults.
type Options struct {
	// Name shows who this is in the broker's list of connections. A random one
	// is used when it is empty.
	Name string
	// TLS adds to the system's settings, such as a CA of one's own.
	TLS *tls.Config
	// DialContext opens TCP connections; default [net.Dialer].
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// RetryTimeout is how long an operation goes on trying while the broker cannot
	// be reached; default one minute. Negative means not at all. A service that
	// waits for its broker however long that takes sets it to [math.MaxInt64].
	RetryTimeout time.Duration
	// ReplyQueue is a queue that requires sessions, for the replies to Request
	// on brokers without temporary nodes, such as Azure Service Bus.
	ReplyQueue string
	// Hooks are called around messages; default: none.
	Hooks Hooks
	// Log gets lost and new connections; default: none.
	Log *slog.Logger
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	out.RetryTimeout = cmp.Or(out.RetryTimeout, time.Minute)
	out.Log = cmp.Or(out.Log, slog.New(slog.DiscardHandler))
	return out
}

// Client is a connection to a broker that renews itself. It is safe for
// concurrent use, as are its senders and, except for Receive, its receivers.
type Client struct {
	options Options
	target  target
	live    *lazyValue[*connection]
	outbox  outbox

	life context.Context // ends with Close
	end  context.CancelCauseFunc
	done sync.WaitGroup // the watchers of connections
}

// New makes a client that connects when it is first used, so that a service may
// start before its broker. It fails only for an address that cannot be read.
//
// The address is a Service Bus connection string, or a URL: amqp://host and
// amqps://host, with user:password@ for a rule's name and key, or ws:// and wss://
// for AMQP through a WebSocket.
//
// The client reconnects by itself whenever it has to, with growing pauses. What was
// in flight is then done again: messages may be sent and received twice, but none is
// lost. An operation waits for the broker for [Options.RetryTimeout], or until its
// context ends.
func New(address string, o *Options) (*Client, error) {
	t, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	c := &Client{options: o.withDefaults(), target: t, live: newLazyValue[*connection]()}
	c.life, c.end = newLifetime()
	return c, nil
}

// Dial is New and the first connection: it tries once, and fails if the broker
// cannot be reached or refuses the login. ctx is for dialling only.
func Dial(ctx context.Context, address string, o *Options) (*Client, error) {
	c, err := New(address, o)
	if err != nil {
		return nil, err
	}
	if _, err := c.connection(ctx); err != nil {
		c.end(ErrClosed)
		return nil, err
	}
	return c, nil
}

// Close ends the connection and everything on it, within five seconds. Locks on
// messages stay until they run out.
func (c *Client) Close() error { return c.closing(c.Shutdown) }

// Shutdown is Close that takes as long as ctx allows.
func (c *Client) Shutdown(ctx context.Context) error {
	c.end(ErrClosed)
	conn, err := c.live.take(ctx)
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if conn != nil && conn.alive() {
		err = conn.close(ctx)
	}
	c.done.Wait()
	return err
}

// connectTimeout bounds one attempt, so that a peer which takes a connection and
// says nothing is an outage and not the end of everything.
const connectTimeout = 30 * time.Second

// connection returns the live connection, after opening one if need be.
func (c *Client) connection(ctx context.Context) (*connection, error) {
	return c.live.get(ctx, (*connection).alive, func() (*connection, error) {
		if c.life.Err() != nil {
			return nil, ErrClosed
		}
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		defer context.AfterFunc(c.life, cancel)() // Close waits for no peer that says nothing
		conn, socket, err := c.options.open(ctx, c.target, c.life)
		if err != nil {
			return nil, err
		}
		opened := newConnection(conn, socket, c.target, c.life)
		c.done.Go(func() { c.watch(opened) })
		return opened, nil
	})
}

// watch waits for the end of a connection, says so, and picks up what is left.
func (c *Client) watch(conn *connection) {
	log := c.options.Log.With("broker", c.target.host)
	log.Debug("connected")
	<-conn.amqp.Done()
	if c.life.Err() == nil {
		log.Warn("connection lost", "err", conn.amqp.Err())
	}
	conn.work.Wait()
}

// entity returns the entity that is meant by what the caller said.
func (c *Client) entity(name string) string { return cmp.Or(name, c.target.entity) }

// Namespace returns the host of the broker as the address names it, with its port if it
// has one.
func (c *Client) Namespace() string { return c.target.name }

// Entity returns the entity that the address names; "" if it names none.
func (c *Client) Entity() string { return c.target.entity }
