// SPDX-License-Identifier: Apache-2.0

package budget

import "math"

// pieceSize is how much a Counter takes from its account at a time, or a sixteenth of
// the account's limit if that is less.
const pieceSize = 16 << 10

// Counter charges an account in pieces, for an owner that counts often: most
// calls change two fields and take no lock. It has one owner, which calls its
// methods one at a time.
//
//	account  ├────────────── charged ───────────────┤
//	owner    ├────────── used ──────────┤  at most two pieces more
//
// A Counter without an account counts, and has no limit.
type Counter struct {
	account *Account
	most    int64 // of piece
	piece   int64
	used    int64 // counted
	charged int64 // charged to account; Invariant: used <= charged
}

// NewCounter returns a Counter of a, which may be nil.
func NewCounter(a *Account) Counter { return NewCounterIn(a, pieceSize) }

// NewCounterIn is NewCounter with pieces of another size.
func NewCounterIn(a *Account, piece int64) Counter {
	c := Counter{account: a, most: piece}
	c.Resized()
	return c
}

// Resized must be called when the limit of the account has changed.
func (c *Counter) Resized() {
	c.piece = c.most
	if c.account != nil {
		c.piece = max(1, min(c.most, c.account.Limit()/16))
	}
}

// Used returns how much is counted.
func (c *Counter) Used() int64 { return c.used }

// Held returns how much is charged to the account. It changes rarely: as long
// as it is the same, nothing has changed in the account.
func (c *Counter) Charged() int64 { return c.charged }

// Take counts n bytes if there is space for them, and reports whether there
// was.
func (c *Counter) Take(n int64) bool {
	if c.used+n > c.charged && !c.reserve(n) {
		return false
	}
	c.used += n
	return true
}

// reserve charges n more bytes to the account, and a piece in advance if there
// is space for that.
func (c *Counter) reserve(n int64) bool {
	missing := c.used + n - c.charged
	whole := (missing + c.piece - 1) / c.piece * c.piece
	switch {
	case c.account == nil || c.account.TryTake(whole):
		c.charged += whole
	case c.account.TryTake(missing):
		c.charged += missing
	default:
		return false
	}
	return true
}

// Add counts n bytes whether there is space for them or not; see
// [Account.Charge].
func (c *Counter) Add(n int64) {
	if c.Take(n) {
		return
	}
	missing := c.used + n - c.charged
	c.account.Charge(missing)
	c.charged += missing
	c.used += n
}

// TakeBeyond counts n bytes as [Account.TakeBeyond] charges them.
func (c *Counter) TakeBeyond(n int64) bool {
	if c.Take(n) {
		return true
	}
	missing := c.used + n - c.charged
	if !c.account.TakeBeyond(missing) {
		return false
	}
	c.charged += missing
	c.used += n
	return true
}

// Available returns how much can be counted now: what the account has left, and what is
// charged in advance.
func (c *Counter) Available() int64 {
	if c.account == nil {
		return math.MaxInt64 / 4
	}
	return c.account.Available() + c.charged - c.used
}

// Short reports whether the account has no space for another piece.
func (c *Counter) Short() bool {
	return c.account != nil && c.account.Available() < c.piece-(c.charged-c.used)
}

// Scarce reports whether less than a quarter is left of the account, or of one
// above it. Users that can work with less then use less, so that there is space
// for those that cannot: a login, a link.
func (c *Counter) Scarce() bool { return c.account != nil && c.account.scarce() }

// Release releases n bytes that were counted.
func (c *Counter) Release(n int64) {
	c.used -= n
	if spare := c.charged - c.used; spare > 2*c.piece {
		c.giveBack(spare - c.piece)
	}
}

// Close releases everything.
func (c *Counter) Close() {
	c.used = 0
	c.giveBack(c.charged)
}

func (c *Counter) giveBack(n int64) {
	c.charged -= n
	if c.account != nil {
		c.account.Release(n)
	}
}
