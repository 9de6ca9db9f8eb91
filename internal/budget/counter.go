// SPDX-License-Identifier: Apache-2.0

package budget

// pieceSize is how much a Counter takes from its account at a time, or a sixteenth of
// the account's limit if that is less.
const pieceSize = 16 << 10

// Counter charges an account in pieces, for an owner that counts often: most calls
// change two numbers of its own and take no lock. It has one owner, who calls its
// methods one at a time.
//
//	account  ├──────────────── held ────────────────┤
//	owner    ├────────── used ──────────┤  at most two pieces more
//
// A Counter without an account counts, and has room for everything.
type Counter struct {
	account *Account
	piece   int64
	used    int64 // counted
	held    int64 // charged to account; Invariant: used <= held
}

// NewCounter returns a Counter of a, which may be nil.
func NewCounter(a *Account) Counter {
	c := Counter{account: a}
	c.Resized()
	return c
}

// Resized is told that the account has got another limit.
func (c *Counter) Resized() {
	c.piece = pieceSize
	if c.account != nil {
		c.piece = max(1, min(pieceSize, c.account.Limit()/16))
	}
}

// Used returns how much is counted.
func (c *Counter) Used() int64 { return c.used }

// Held returns how much is charged to the account. It changes seldom: with the account
// nothing has changed as long as it is the same.
func (c *Counter) Held() int64 { return c.held }

// Take counts n bytes if there is room for them, and reports whether there was.
func (c *Counter) Take(n int64) bool {
	if c.used+n > c.held && !c.hold(n) {
		return false
	}
	c.used += n
	return true
}

// hold has n more bytes held, with some to spare if there is room for that.
func (c *Counter) hold(n int64) bool {
	missing := c.used + n - c.held
	whole := (missing + c.piece - 1) / c.piece * c.piece
	switch {
	case c.account == nil || c.account.TryTake(whole):
		c.held += whole
	case c.account.TryTake(missing):
		c.held += missing
	default:
		return false
	}
	return true
}

// Add counts n bytes whether there is room for them or not; see [Account.Charge].
func (c *Counter) Add(n int64) {
	if c.Take(n) {
		return
	}
	missing := c.used + n - c.held
	c.account.Charge(missing)
	c.held += missing
	c.used += n
}

// TakeBeyond counts n bytes as [Account.TakeBeyond] charges them.
func (c *Counter) TakeBeyond(n int64) bool {
	if c.Take(n) {
		return true
	}
	missing := c.used + n - c.held
	if !c.account.TakeBeyond(missing) {
		return false
	}
	c.held += missing
	c.used += n
	return true
}

// Short reports whether the account has no room for another piece.
func (c *Counter) Short() bool { return c.account != nil && c.account.Room() < c.piece-(c.held-c.used) }

// Scarce reports whether less than a quarter is left of the account, or of one above
// it. Who can do with less holds back then, so that there is room for those who cannot:
// a login, a link.
func (c *Counter) Scarce() bool { return c.account != nil && c.account.scarce() }

// Release gives back n bytes that were counted.
func (c *Counter) Release(n int64) {
	c.used -= n
	if spare := c.held - c.used; spare > 2*c.piece {
		c.giveBack(spare - c.piece)
	}
}

// Close gives back everything.
func (c *Counter) Close() {
	c.used = 0
	c.giveBack(c.held)
}

func (c *Counter) giveBack(n int64) {
	c.held -= n
	if c.account != nil {
		c.account.Release(n)
	}
}
