// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/notify"
)

// Conn is one peer on a socket: a [Machine] with a reader and a writer around it.
type Conn struct {
	nc  net.Conn
	cfg Config

	mu      sync.Mutex
	machine *Machine // guarded by mu; calls of the App run under it

	todoMu sync.Mutex
	todo   []func() // guarded by todoMu
	spare  []func() // owned by the writer: space for the next todo
	over   bool     // guarded by todoMu; nothing will run any more

	wake    notify.Signal // for the writer: there is something to write or to do
	resumed notify.Signal // for the reader: the App may have space again

	unwritten int // owned by the writer: bytes that a failed write did not take

	end atomic.Pointer[time.Time] // when a stop is to be over; nil without a stop or a limit
}

// NewConn makes a connection that is served by Serve. The App gets it before
// that, because Do is how it comes back from other goroutines.
func NewConn(nc net.Conn, cfg Config) *Conn {
	return &Conn{nc: nc, cfg: cfg.withDefaults(), wake: notify.New(), resumed: notify.New()}
}

// Restrict has what the peer makes us hold charged to an account, and takes the peer for
// an unauthenticated peer until Known. It is called before Serve.
func (c *Conn) Restrict(account *budget.Account) {
	c.cfg.Account, c.cfg.Unauthenticated = account, true
}

// Known says that the peer has proved something, after its account has got the limit of
// those that have. It is called in the connection's context.
func (c *Conn) Known() { c.machine.known() }

// RemoteAddr returns the address of the peer.
func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// Serve speaks AMQP with the peer until it leaves, ctx ends or it breaks the
// protocol, and reports why; a peer that closed cleanly is nil. When Serve
// returns, the socket is closed and no goroutine of it is left.
//
// When ctx ends the peer is let go: what it has sent is answered, every link is detached
// with amqp:link:detach-forced, and the connection is closed with amqp:connection:forced,
// or the cause if that is an [Error], all of it before the deadline that ctx has by then,
// also if the peer reads nothing.
func (c *Conn) Serve(ctx context.Context, app App) error {
	defer c.nc.Close()
	c.mu.Lock()
	c.machine = NewMachine(app, c.cfg, time.Now())
	c.mu.Unlock()
	stop := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)

	// A deadline in the past wakes the reader. The socket stays open for the
	// writer, which still has to tell the peer why.
	poked := make(chan struct{})
	unpoke := context.AfterFunc(ctx, func() {
		defer close(poked)
		c.nc.SetReadDeadline(time.Unix(1, 0))
	})

	// Nor does a peer that does not read make the stop longer.
	defer context.AfterFunc(stop, func() {
		if at, ok := stop.Deadline(); ok {
			end := time.Now().Add(time.Until(at) * 15 / 16) // the rest is for what comes after
			c.end.Store(&end)
			c.nc.SetWriteDeadline(c.writeDeadline())
		}
	})()

	var wg sync.WaitGroup
	wg.Go(func() { cancel(c.readLoop(ctx)) })
	wg.Go(func() { cancel(c.writeLoop(ctx, stop)) })
	wg.Wait()
	c.machine.Unwritten(c.unwritten) // there is no one left to share it with
	c.machine.Release()
	c.drop()
	if !unpoke() {
		<-poked
	}
	err := context.Cause(ctx)
	if explained(err) {
		c.linger()
	}
	if errors.Is(err, errClosed) {
		return nil
	}
	return err
}

// Do runs f in the connection's context, soon, in the order of the calls. It may
// be called from any goroutine, also from inside the connection's context,
// and never blocks. After the App's Closed, f is dropped.
func (c *Conn) Do(f func()) {
	c.todoMu.Lock()
	if !c.over {
		c.todo = append(c.todo, f)
	}
	c.todoMu.Unlock()
	c.wake.Notify()
}

// Resume says that the App may have space for the delivery that it had none for. It
// may be called from any goroutine, and never blocks.
func (c *Conn) Resume() { c.resumed.Notify() }

// Close closes the connection with err, which the peer gets and Serve returns;
// nil means amqp:connection:forced.
// It may be called from any goroutine.
func (c *Conn) Close(err error) {
	if err == nil {
		err = Errorf(CondConnectionForced, textStopping)
	}
	c.Do(func() { c.machine.closeErr = err })
}

// drop forgets what was to be done: there is no connection to do it in.
func (c *Conn) drop() {
	c.todoMu.Lock()
	c.todo, c.over = nil, true
	c.todoMu.Unlock()
}

// Buffers grow with what the peer sends, and shrink again when it has sent little for a
// while, so that a thousand idle connections cost little.
const (
	minRead  = 4 << 10
	maxRead  = 64 << 10
	fewReads = 64 // in a row that would have fitted into the smallest buffer
)

// readLoop feeds the machine until it or the transport ends. While the App has no
// space it reads nothing, so that in the end the peer cannot send any more.
func (c *Conn) readLoop(ctx context.Context) error {
	buf := make([]byte, minRead)
	small := 0 // reads in a row that would have fitted into minRead
	for {
		n, err := c.nc.Read(buf)
		if n > 0 {
			if err := c.feedAll(ctx, buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			err = fmt.Errorf("endpoint: read: %w", err)
			// A timeout is Serve waking us up; then the writer has the last word.
			if e, ok := errors.AsType[net.Error](err); !ok || !e.Timeout() {
				c.abort(err)
			}
			return err
		}
		switch small++; {
		case n == len(buf) && n < maxRead && c.growRead(4*n):
			buf = make([]byte, 4*n)
			small = 0
		case n > minRead:
			small = 0
		case small >= fewReads && len(buf) > minRead && c.growRead(minRead):
			buf = make([]byte, minRead)
		}
	}
}

// growRead asks for a buffer of another size.
func (c *Conn) growRead(size int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.growRead(size)
}

// feedAll feeds b to the machine, and waits as often as the App has no space.
func (c *Conn) feedAll(ctx context.Context, b []byte) error {
	for {
		rest, paused, err := c.feed(b)
		if err != nil || !paused {
			return err
		}
		select {
		case <-c.resumed:
			b = rest
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *Conn) feed(b []byte) (rest []byte, paused bool, err error) {
	c.mu.Lock()
	err = c.machine.Feed(time.Now(), b)
	rest, paused = c.machine.Paused()
	work := c.machine.Pending()
	c.mu.Unlock()
	if work {
		c.wake.Notify()
	}
	return rest, paused, err
}

// abort ends the machine because the transport broke.
func (c *Conn) abort(err error) {
	c.mu.Lock()
	c.machine.Abort(err)
	c.mu.Unlock()
}

// linger waits a moment for the peer to read the reason we closed for: closing a
// socket that has unread input resets it and may take that reason away again. It does
// not wait beyond the end of a stop.
func (c *Conn) linger() {
	if w, ok := c.nc.(interface{ CloseWrite() error }); !ok || w.CloseWrite() != nil {
		return
	}
	const patience, most = time.Second, 1 << 20
	c.nc.SetReadDeadline(c.before(time.Now().Add(patience)))
	io.CopyN(io.Discard, c.nc, most)
}

// explained reports whether the connection ended with words of ours to the peer.
func explained(err error) bool {
	return !errors.Is(err, errClosed) && !errors.Is(err, io.EOF)
}
