// SPDX-License-Identifier: Apache-2.0

package client

import "context"

// slot holds something that is opened when it is first needed and again after
// it broke, by one caller at a time while the others wait.
type slot[T comparable] struct {
	turn  chan struct{} // capacity 1: full while someone looks at value
	value T             // owned by whoever filled turn
}

func newSlot[T comparable]() *slot[T] { return &slot[T]{turn: make(chan struct{}, 1)} }

// get returns the value if it is usable, else what open makes of it.
func (s *slot[T]) get(ctx context.Context, usable func(T) bool, open func() (T, error)) (T, error) {
	var zero T
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	}
	defer func() { <-s.turn }()
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

// take empties the slot and returns what was in it, zero if nothing was.
func (s *slot[T]) take() T {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	var zero T
	v := s.value
	s.value = zero
	return v
}
