// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Errors of layers.
var (
	// ErrEnded means that a layer returned, without an error, unasked.
	ErrEnded = errors.New("lifecycle: ended unasked")
	// ErrOverstayed means that a layer did not return in time.
	ErrOverstayed = errors.New("lifecycle: still running")
)

// Stack is a number of running layers, each standing on those before it.
type Stack struct {
	ctx    context.Context
	layers []*layer
	ended  chan *layer // capacity 1: only the first to end unasked decides
}

type layer struct {
	name string
	stop context.CancelCauseFunc
	done chan struct{}
	err  error // set before done is closed
}

// New returns an empty Stack that stops when ctx ends.
func New(ctx context.Context) *Stack {
	return &Stack{ctx: ctx, ended: make(chan *layer, 1)}
}

// Go starts a layer on top of the others. Its context has the values of the
// Stack's, but ends only when it is the layer's turn.
func (s *Stack) Go(name string, run func(context.Context) error) {
	ctx, stop := context.WithCancelCause(context.WithoutCancel(s.ctx))
	l := &layer{name: name, stop: stop, done: make(chan struct{})}
	s.layers = append(s.layers, l)
	go func() { // owned by s; Wait waits for done
		l.err = run(ctx)
		close(l.done)
		select {
		case s.ended <- l:
		default: // another ended first
		}
	}()
}

// Wait returns when the Stack's context has ended, or a layer has, and all layers
// have stopped since; each may take up to grace to do so, any time if grace is
// zero. The error joins those of all layers, with their names. It is nil if every
// layer returned, when asked to, nil or the cause of its context.
func (s *Stack) Wait(grace time.Duration) error {
	var first *layer
	var cause error
	var errs []error
	select {
	case <-s.ctx.Done():
		cause = context.Cause(s.ctx)
	case first = <-s.ended:
		cause = fmt.Errorf("%s: %w", first.name, cmp.Or(first.err, ErrEnded))
		errs = append(errs, cause)
	}
	for _, l := range slices.Backward(s.layers) {
		if err := l.end(cause, grace); err != nil && l != first {
			errs = append(errs, fmt.Errorf("%s: %w", l.name, err))
		}
	}
	return errors.Join(errs...)
}

// end asks l to stop and returns what it did wrong.
func (l *layer) end(cause error, grace time.Duration) error {
	l.stop(cause)
	var late <-chan time.Time // nil, so never ready, without a limit
	if grace > 0 {
		late = time.After(grace)
	}
	select {
	case <-l.done:
		if obeys(l.err, cause) {
			return nil
		}
		return l.err
	case <-late:
		return fmt.Errorf("%w after %v", ErrOverstayed, grace)
	}
}

// obeys reports whether err says nothing but that the layer was told to stop.
// errors.Is would not do: a layer that also failed to sync joins both errors.
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
