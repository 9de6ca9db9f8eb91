// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"context"
	"sync"
)

// Turns lets a number of pieces of work be done at a time. The rest wait.
type Turns struct {
	slots chan struct{} // has an element for each piece of work that is being done
	each  int           // of one owner, at work or at the head of its line

	mu    sync.Mutex
	lines map[string]*line // guarded by mu; of owners with work
}

// line is the work of one owner.
type line struct {
	head chan struct{} // has an element for each piece that is at work, or waits for a slot
	work int           // all pieces; guarded by Turns.mu
}

// New returns Turns for so many pieces of work at a time, and so many of one owner.
func New(slots, each int) *Turns {
	return &Turns{slots: make(chan struct{}, slots), each: each, lines: make(map[string]*line)}
}

// Take waits until it is the turn of a piece of work, or until ctx ends: the error is the
// cause of that. leave must be called once, when the work is done.
func (t *Turns) Take(ctx context.Context, owner string) (leave func(), err error) {
	l := t.join(owner)
	select {
	case l.head <- struct{}{}:
	case <-ctx.Done():
		t.part(owner, l)
		return nil, context.Cause(ctx)
	}
	select {
	case t.slots <- struct{}{}:
	case <-ctx.Done():
		<-l.head
		t.part(owner, l)
		return nil, context.Cause(ctx)
	}
	return func() { t.leave(owner, l) }, nil
}

// Wait is Take for work that is done in any case.
func (t *Turns) Wait(owner string) (leave func()) {
	l := t.join(owner)
	l.head <- struct{}{}
	t.slots <- struct{}{}
	return func() { t.leave(owner, l) }
}

func (t *Turns) leave(owner string, l *line) {
	<-t.slots
	<-l.head
	t.part(owner, l)
}

// join adds a piece of work to the line of its owner.
func (t *Turns) join(owner string) *line {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[owner]
	if l == nil {
		l = &line{head: make(chan struct{}, t.each)}
		t.lines[owner] = l
	}
	l.work++
	return l
}

// part removes one. A line without work is forgotten.
func (t *Turns) part(owner string, l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.work--; l.work == 0 {
		delete(t.lines, owner)
	}
}
