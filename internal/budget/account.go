// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"container/list"
	"context"
	"sync"
)

// Account is an amount of memory, in bytes, that can be used.
type Account struct {
	tree   *tree
	parent *Account // nil at the root; guarded by tree.mu
	limit  int64    // guarded by tree.mu
	shared bool     // each account below may use as much as is still free; does not change
	capped bool     // what is charged beyond the limit is not charged above; does not change

	used  int64  // guarded by tree.mu
	stuck int    // waiters for which there is no space here; guarded by tree.mu
	below int    // waiters that are charged here, or below; guarded by tree.mu
	full  uint64 // the last pass of tree.admit that found no space here; guarded by tree.mu
}

// tree is what the accounts below one root share.
type tree struct {
	mu      sync.Mutex
	waiting list.List // guarded by mu; of *waiter, in order of their coming
	pass    uint64    // of admit; guarded by mu
}

// waiter is a charge for which there was no space. Its fields are guarded by
// tree.mu.
type waiter struct {
	account *Account
	bytes   int64
	ready   func()
	place   *list.Element
	at      *Account // the account without space: account or one above it; nil once charged or withdrawn
}

// New returns the root of a tree of accounts, with so many bytes.
func New(limit int64) *Account { return &Account{tree: new(tree), limit: limit} }

// Child returns an account of up to limit bytes, which are part of a's.
func (a *Account) Child(limit int64) *Account {
	return &Account{tree: a.tree, parent: a, limit: min(limit, a.Limit())}
}

// Limit returns how much can be charged to a at most.
func (a *Account) Limit() int64 {
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	return a.limit
}

// Used returns how much is charged to a, and to all below it.
func (a *Account) Used() int64 {
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	return a.used
}

// Available returns how much can be charged to a now: the least that is left in
// a and in the accounts above it. It is negative if one is charged with more
// than its limit.
func (a *Account) Available() int64 {
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	space := a.left()
	for x := a.parent; x != nil; x = x.parent {
		space = min(space, x.left())
	}
	return space
}

// left returns how much can be charged to a as far as a is concerned: what is left of its
// limit, and of a shared account no more than would still be free for the next one. The first
// can use half of it, the next one half of what is left. mu is held.
func (a *Account) left() int64 {
	n := a.limit - a.used
	if p := a.parent; p != nil && p.shared {
		n = min(n, (p.limit-p.used-a.used)/2)
	}
	return n
}

// scarce reports whether less than a quarter is left of a, or of an account above it.
func (a *Account) scarce() bool {
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	for x := a; x != nil; x = x.parent {
		if n := x.left(); n < (x.used+n)/4 {
			return true
		}
	}
	return false
}

// Charge charges n bytes whether there is space for them or not: for memory
// that is allocated already, or that cannot be rejected. Later charges find
// less space.
func (a *Account) Charge(n int64) {
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	a.charge(n)
}

// Move puts a, with everything that is charged to it and below it, below
// another account of the tree, and gives it a new limit. It always succeeds,
// because the memory is allocated already.
func (a *Account) Move(to *Account, limit int64) {
	t := a.tree
	t.mu.Lock()
	if a.parent != nil {
		a.parent.charge(-a.used)
		a.parent.expect(-a.below)
	}
	a.parent, a.limit = to, min(limit, to.limit)
	to.charge(a.used)
	to.expect(a.below)
	var found []*waiter
	if t.waiting.Len() > 0 {
		// The waiters below a may be blocked by another account now. Until admit has
		// checked them, a blocks them: later charges there stay behind them.
		for e := t.waiting.Front(); e != nil; e = e.Next() {
			if w := e.Value.(*waiter); w.account.within(a) {
				w.stickAt(a)
			}
		}
		found = t.admit()
	}
	t.mu.Unlock()
	for _, w := range found {
		w.ready()
	}
}

// within reports whether a is b or below it; tree.mu is held.
func (a *Account) within(b *Account) bool {
	for x := a; x != nil; x = x.parent {
		if x == b {
			return true
		}
	}
	return false
}

// TryTake charges n bytes if there is space for them now, and reports whether
// there was.
func (a *Account) TryTake(n int64) bool {
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	if a.obstacle(n) != nil {
		return false
	}
	a.charge(n)
	return true
}

// TakeBeyond charges n bytes for short-lived memory that ends independent of
// its peer, and reports whether it did: as long as neither a nor an account
// above it is charged with an eighth more than it may have. So short-lived work
// continues when long-lived memory has used up an account, and is still
// bounded. It does not wait behind waiters.
func (a *Account) TakeBeyond(n int64) bool {
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	for x := a; x != nil; x = x.parent {
		if x.overdrawn() {
			return false
		}
	}
	a.charge(n)
	return true
}

// overdrawn reports whether a is charged with an eighth more than it may have; mu is held.
func (a *Account) overdrawn() bool {
	most := a.most()
	return a.used-most >= most/8
}

// most returns how much a may have. A part of a shared account may have a sixteenth of it, also
// if others use it up. mu is held.
func (a *Account) most() int64 {
	n := a.used + a.left()
	if p := a.parent; p != nil && p.shared {
		n = max(n, p.limit/16)
	}
	return n
}

// exceeded reports whether a, or an account above it, is charged with more than its limit, or a
// part of a shared account of which little is left with more than it may have. While there is
// more, short-lived work of an owner does not keep its other connections out.
func (a *Account) exceeded() bool {
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	for x := a; x != nil; x = x.parent {
		p := x.parent
		if x.used > x.limit || p != nil && p.shared && p.limit-p.used < p.limit/4 && x.used > x.most() {
			return true
		}
	}
	return false
}

// TakeOrWait charges n bytes if there is space for them now, and then returns
// true. Otherwise it charges them as soon as there is space, and then calls
// ready. Before they are charged, withdraw cancels the wait; after that, it
// releases them. ready may be called at the same time. A second call of
// withdraw does nothing.
func (a *Account) TakeOrWait(n int64, ready func()) (taken bool, withdraw func()) {
	t := a.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	at := a.obstacle(n)
	if at == nil {
		a.charge(n)
		return true, sync.OnceFunc(func() { a.Release(n) })
	}
	w := &waiter{account: a, bytes: n, ready: ready}
	w.place = t.waiting.PushBack(w)
	a.expect(1)
	w.stickAt(at)
	return false, sync.OnceFunc(func() { t.withdraw(w) })
}

// Take charges n bytes, for which it waits until ctx ends. The error is the cause
// of that; nothing is charged then.
func (a *Account) Take(ctx context.Context, n int64) error {
	ready := make(chan struct{})
	taken, withdraw := a.TakeOrWait(n, func() { close(ready) })
	if taken {
		return nil
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		withdraw()
		return context.Cause(ctx)
	}
}

// waiting returns how many charges wait in the tree of a.
func (a *Account) waiting() int {
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	return a.tree.waiting.Len()
}

// Release releases n bytes that were charged.
func (a *Account) Release(n int64) {
	if n == 0 {
		return
	}
	t := a.tree
	t.mu.Lock()
	a.charge(-n)
	var found []*waiter
	if t.waiting.Len() > 0 {
		found = t.admit()
	}
	t.mu.Unlock()
	for _, w := range found {
		w.ready()
	}
}

// obstacle returns the account, a or one above it, that has no space for a new
// charge of n bytes; nil if all have; tree.mu is held.
func (a *Account) obstacle(n int64) *Account {
	for x := a; x != nil; x = x.parent {
		if x.stuck > 0 || !x.fits(n) {
			return x
		}
	}
	return nil
}

func (a *Account) fits(n int64) bool { return a.used == 0 || n <= a.left() }

func (a *Account) charge(n int64) {
	for x := a; x != nil; x = x.parent {
		before := x.used
		x.used += n
		if x.capped {
			n = min(x.used, x.limit) - min(before, x.limit)
		}
	}
}

// expect counts n more waiters.
func (a *Account) expect(n int) {
	for x := a; x != nil; x = x.parent {
		x.below += n
	}
}

// stickAt records which account has no space for the waiter, nil for none.
func (w *waiter) stickAt(at *Account) {
	if w.at != nil {
		w.at.stuck--
	}
	if w.at = at; at != nil {
		at.stuck++
	}
}

// admit charges the waiters for which there is space now, in order, and returns
// them; mu is held. An account that has no space for one of them has none for
// those behind it. When all remaining waiters are below such an account, the
// pass ends.
func (t *tree) admit() (found []*waiter) {
	t.pass++
	for e := t.waiting.Front(); e != nil; {
		w := e.Value.(*waiter)
		e = e.Next()
		at := w.account.fullFor(w.bytes, t.pass)
		if at == nil {
			t.remove(w)
			w.account.charge(w.bytes)
			found = append(found, w)
			continue
		}
		w.stickAt(at)
		at.full = t.pass
		if at.below == t.waiting.Len() {
			break
		}
	}
	return found
}

// fullFor returns the account, a or one above it, that has no space for n
// bytes, or had none for an earlier waiter in this pass; nil if all have;
// tree.mu is held.
func (a *Account) fullFor(n int64, pass uint64) *Account {
	for x := a; x != nil; x = x.parent {
		if x.full == pass || !x.fits(n) {
			return x
		}
	}
	return nil
}

// withdraw removes a waiter, or releases what it was charged meanwhile.
func (t *tree) withdraw(w *waiter) {
	t.mu.Lock()
	if w.at == nil {
		t.mu.Unlock()
		w.account.Release(w.bytes)
		return
	}
	t.remove(w)
	found := t.admit() // it may have blocked others
	t.mu.Unlock()
	for _, w := range found {
		w.ready()
	}
}

// remove removes a waiter from the list; mu is held.
func (t *tree) remove(w *waiter) {
	t.waiting.Remove(w.place)
	w.account.expect(-1)
	w.stickAt(nil)
}
