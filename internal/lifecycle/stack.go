// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Errors of layers.
var (
	// errEnded means that a layer returned, without an error, before it was stopped.
	errEnded = errors.New("lifecycle: layer returned before it was stopped")
	// ErrStopTimeout means that a layer did not return in time.
	ErrStopTimeout = errors.New("lifecycle: still running")
)

// Stack is a number of running layers, each of which depends on those before
// it.
type Stack struct {
	ctx    context.Context
	layers []*layer
	ended  chan *layer // capacity 1: only the first that returns early decides
}

type layer struct {
	name string
	ctx  *layerContext
	stop context.CancelCauseFunc
	done chan struct{}
	err  error // set before done is closed
}

// layerContext is the context of a layer. It has no deadline while the layer runs;
// from the moment it ends it says until when the layer may take to return.
type layerContext struct {
	context.Context
	until atomic.Pointer[time.Time] // nil without a limit
}

// Deadline returns when a stopped layer must have returned.
func (c *layerContext) Deadline() (time.Time, bool) {
	if at := c.until.Load(); at != nil {
		return *at, true
	}
	return time.Time{}, false
}

// New returns an empty Stack that stops when ctx ends.
func New(ctx context.Context) *Stack {
	return &Stack{ctx: ctx, ended: make(chan *layer, 1)}
}

// Go starts a layer on top of the others. Its context has the values of the
// Stack's, but ends only when it is the layer's turn. Once it has ended, its
// Deadline is until when the layer may take to return, if there is a limit.
func (s *Stack) Go(name string, run func(context.Context) error) {
	ctx, stop := context.WithCancelCause(context.WithoutCancel(s.ctx))
	l := &layer{name: name, ctx: &layerContext{Context: ctx}, stop: stop, done: make(chan struct{})}
	s.layers = append(s.layers, l)
	go func() { // owned by s; Wait waits for done
		l.err = run(l.ctx)
		close(l.done)
		select {
		case s.ended <- l:
		default: // another ended first
		}
	}()
}

// Wait returns when the Stack's context or a layer has ended, and all layers
// have stopped since. That takes no longer than grace, for all of them
// together; a grace of zero is no limit. The error joins the errors of all
// layers, with their names. It is nil if every layer returned, when stopped,
// nil or the cause of its context.
//
// A layer has half of the time that is left when it is stopped, the last one
// all of it. A layer that takes longer no longer delays the layers below it,
// and may still return while these stop.
func (s *Stack) Wait(grace time.Duration) error {
	var first *layer
	var cause error
	select {
	case <-s.ctx.Done():
		cause = context.Cause(s.ctx)
	case first = <-s.ended:
		cause = fmt.Errorf("%s: %w", first.name, cmp.Or(first.err, errEnded))
	}
	late := make(chan struct{}) // closed when the grace is over; never without one
	if grace > 0 {
		defer time.AfterFunc(grace, func() { close(late) }).Stop()
	}
	deadline := time.Now().Add(grace)
	for i, l := range slices.Backward(s.layers) {
		switch left := time.Until(deadline); {
		case grace == 0:
			l.stop(cause)
			<-l.done
		case i == 0:
			l.end(cause, left)
		default:
			l.end(cause, left/2)
		}
	}
	var errs []error
	if first != nil {
		errs = append(errs, cause)
	}
	for _, l := range slices.Backward(s.layers) {
		switch {
		case !l.returned(late):
			errs = append(errs, fmt.Errorf("%s: %w after %v", l.name, ErrStopTimeout, grace))
		case l != first && !obeys(l.err, cause):
			errs = append(errs, fmt.Errorf("%s: %w", l.name, l.err))
		}
	}
	return errors.Join(errs...)
}

// end stops l and waits for it, but no longer than part. The deadline of the
// layer is nine tenths of it: the rest is for returning.
func (l *layer) end(cause error, part time.Duration) {
	until := time.Now().Add(part - part/10)
	l.ctx.until.Store(&until) // first: code that sees the end of ctx may read it
	l.stop(cause)
	select {
	case <-l.done:
	case <-time.After(part):
	}
}

// returned reports whether l has returned, for which it waits until late is closed.
func (l *layer) returned(late <-chan struct{}) bool {
	select {
	case <-l.done:
		return true
	case <-late:
	}
	select {
	case <-l.done: // both at once
		return true
	default:
		return false
	}
}

// obeys reports whether err says only that the layer was stopped. errors.Is is
// not sufficient: a layer that also failed to sync joins both errors.
func obeys(err, cause error) bool {
	if err == nil || err == cause || err == context.Canceled { //nolint:errorlint // see above
		return true
	}
	switch err := err.(type) { //nolint:errorlint // see above
	case interface{ Unwrap() error }:
		return err.Unwrap() != nil && obeys(err.Unwrap(), cause)
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(err.Unwrap(), func(e error) bool { return !obeys(e, cause) })
	}
	return false
}
