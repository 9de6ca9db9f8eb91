// SPDX-License-Identifier: Apache-2.0

package client

import "context"

// lazyValue is a value that is opened when it is first needed and again after it
// broke. One caller opens it while the others wait.
type lazyValue[T comparable] struct {
	sem   chan struct{} // capacity 1: a semaphore, so that waiting ends with a context
	value T             // owned by the holder of sem
}

func newLazyValue[T comparable]() *lazyValue[T] { return &lazyValue[T]{sem: make(chan struct{}, 1)} }

// get returns the value if it is usable, else what open makes of it.
func (s *lazyValue[T]) get(ctx context.Context, usable func(T) bool, open func() (T, error)) (T, error) {
	var zero T
	select {
	case s.sem <- struct{}{}:
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	}
	defer func() { <-s.sem }()
	if s.value != zero && usable(s.value) {
		return s.value, nil
	}
	v, err := open()
	if err != nil {
		return zero, err
	}
	s.value = v
	return v, nil
}

// take removes and returns the value; zero if there is none. It fails only when ctx
// ends while someone opens the value.
func (s *lazyValue[T]) take(ctx context.Context) (T, error) {
	var zero T
	select {
	case s.sem <- struct{}{}: // also when ctx has ended: the value would be left open
	default:
		select {
		case s.sem <- struct{}{}:
		case <-ctx.Done():
			return zero, context.Cause(ctx)
		}
	}
	defer func() { <-s.sem }()
	v := s.value
	s.value = zero
	return v, nil
}
