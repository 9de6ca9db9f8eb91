// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// maxWrite is how much is written under one deadline, so that the deadline asks
// for a speed and not for a size: with ten seconds, 6.4 KiB/s.
const maxWrite = 64 << 10

// writeLoop runs what was handed to Do, keeps the machine's time and writes its
// output, all that has come together since the last write at once. It lets the peer go
// when stop ends.
func (c *Conn) writeLoop(ctx, stop context.Context) error {
	timer := time.NewTimer(c.cfg.HandshakeTimeout)
	defer timer.Stop()
	for {
		select {
		case <-c.wake:
		case <-timer.C:
		case <-ctx.Done():
			return c.closeAndFlush(context.Cause(ctx))
		case <-stop.Done():
			return c.stop(ctx, stop)
		}
		next, err := c.pump()
		if err != nil {
			return err
		}
		timer.Reset(time.Until(next))
	}
}

// closeAndFlush closes the connection because of cause, unless the machine is done
// already, and writes what is left to write.
func (c *Conn) closeAndFlush(cause error) error {
	if _, ok := errors.AsType[*Error](cause); !ok {
		cause = fmt.Errorf("%w: %w", cause, Errorf(CondConnectionForced, textStopping))
	}
	c.mu.Lock()
	c.machine.Close(cause)
	c.mu.Unlock()
	_, err := c.pump()
	return err
}

// pump works until there is nothing left to do and returns when to come back.
func (c *Conn) pump() (next time.Time, err error) {
	for {
		todo := c.takeTodo()
		out, next, err := c.step(time.Now(), todo)
		c.recycle(todo)
		if len(out) == 0 {
			return next, err
		}
		if err := c.write(out); err != nil {
			c.abort(err)
			return next, err
		}
	}
}

// step runs what was handed to Do and returns what to write.
func (c *Conn) step(now time.Time, todo []func()) (out []byte, next time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.machine
	for _, f := range todo {
		if m.phase == done {
			break
		}
		f()
	}
	if err = m.Advance(now); err == nil {
		err = m.Tick(now)
	}
	out = m.Take()
	if m.unread && len(out) > 0 {
		m.unread = false
		c.Resume()
	}
	next, _ = m.NextDeadline()
	return out, next, err
}

func (c *Conn) takeTodo() []func() {
	c.todoMu.Lock()
	defer c.todoMu.Unlock()
	todo := c.todo
	c.todo, c.spare = c.spare, nil
	return todo
}

// recycle keeps the space of a todo list that was run, unless it was a long one.
func (c *Conn) recycle(todo []func()) {
	const most = 1024
	clear(todo)
	if cap(todo) <= most {
		c.spare = todo[:0]
	}
}

func (c *Conn) write(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), maxWrite)
		at := c.writeDeadline()
		c.nc.SetWriteDeadline(at)
		if end := c.before(at); end != at { // a stop has begun since
			c.nc.SetWriteDeadline(end)
		}
		if taken, err := c.nc.Write(b[:n]); err != nil {
			c.unwritten = len(b) - taken
			if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
				return fmt.Errorf("%w: write: %w", errSlow, err)
			}
			return fmt.Errorf("endpoint: write: %w", err)
		}
		b = b[n:]
	}
	return nil
}

// writeDeadline is until when a write that begins now may take.
func (c *Conn) writeDeadline() time.Time { return c.before(time.Now().Add(c.cfg.WriteTimeout)) }

// before returns at, or the end of the stop if that is earlier.
func (c *Conn) before(at time.Time) time.Time {
	if end := c.end.Load(); end != nil && end.Before(at) {
		return *end
	}
	return at
}
