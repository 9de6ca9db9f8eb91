// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
)

// Unsynced is the memory of what a connection has sent and the broker has not made
// durable yet. It is charged before a delivery is taken over: a peer that sends
// faster than the disk takes it is not read from until there is memory again. All of
// it belongs to the connection's context, but for account.
type Unsynced struct {
	account *budget.Account
	do      func(func())
	resume  func()

	given    int64  // charged for the delivery that comes next
	withdraw func() // ends the wait for memory; nil while there is none
	waits    uint64 // counts those waits, and their ends before there was memory
	answered int64  // charges of what was answered in this pass of the outbox
}

// NewUnsynced returns the memory of a connection in an account. It has resume called by
// do, which runs functions in the connection's context, when there is memory again.
func NewUnsynced(account *budget.Account, do func(func()), resume func()) *Unsynced {
	return &Unsynced{account: account, do: do, resume: resume}
}

// Account is what is charged.
func (u *Unsynced) Account() *budget.Account { return u.account }

// Reserve charges a delivery of size bytes with some messages, and reports whether there was
// memory. If not, it is charged as soon as there is, and then the peer is read from again.
func (u *Unsynced) Reserve(size, messages int) bool {
	n := broker.Unsynced(size, messages)
	switch {
	case u.withdraw != nil:
		return false // resumed for another reason
	case u.given == n:
		return true // what we waited for, or what no delivery has used
	case u.given > 0:
		u.account.Release(u.Take())
	}
	if u.account.TryTake(n) {
		u.given = n
		return true
	}
	u.waits++
	wait := u.waits
	taken, withdraw := u.account.TakeOrWait(n, func() {
		u.do(func() {
			if u.waits != wait {
				return // withdrawn meanwhile
			}
			u.given, u.withdraw = n, nil
			u.resume()
		})
	})
	if taken {
		u.given = n
		return true
	}
	u.withdraw = withdraw
	return false
}

// Take returns what was charged for the delivery at hand. It is its keeper's to
// give back.
func (u *Unsynced) Take() int64 {
	n := u.given
	u.given = 0
	return n
}

// answer gives a charge back at the end of the pass.
func (u *Unsynced) answer(n int64) { u.answered += n }

// settle gives back what was answered in a pass, all at once.
func (u *Unsynced) settle() {
	n := u.answered
	u.answered = 0
	u.account.Release(n)
}

// Cancel gives back what was charged for the delivery that Reserve was asked about last, or
// ends the wait for it: it does not come any more. A peer that waited is read from again.
func (u *Unsynced) Cancel() {
	if u.withdraw != nil {
		u.Close()
		u.resume()
		return
	}
	u.account.Release(u.Take())
}

// Close gives back what no delivery will use.
func (u *Unsynced) Close() {
	if u.withdraw != nil {
		u.withdraw()
		u.withdraw = nil
		u.waits++
	}
	u.account.Release(u.Take())
}
