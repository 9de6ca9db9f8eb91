// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"cmp"
	"math"
	"sync"
)

const (
	// UnauthenticatedLimit is the memory limit of a connection that has not logged
	// in.
	UnauthenticatedLimit = 64 << 10
	// AllUnauthenticatedLimit is the limit of all such connections together.
	AllUnauthenticatedLimit = 64 << 20
	// UnsyncedLimit is how much memory messages may take that are not on disk yet,
	// of all connections together.
	UnsyncedLimit = 64 << 20
	// ConnectionLimit is the most memory that one connection may use, however much
	// there is.
	ConnectionLimit = 256 << 20

	// MessagesReserve is which part of the memory for messages is for queues with few of
	// them, whatever waits in others: one in so many.
	MessagesReserve = 8

	// unknownMemory is what peers may use when the amount of memory is unknown.
	unknownMemory = 1 << 30
)

// Process is the memory that the process uses for its peers, as a tree of
// accounts:
//
//	process
//	├─ common               all but a sixteenth of it
//	│   ├─ unauthenticated  connections that have not logged in, each up to UnauthenticatedLimit
//	│   └─ known            keys, together all but an eighth of the process; shared
//	│       ├─ key          of the namespace
//	│       │   └─ ...      one account for each connection, with up to a quarter of the process
//	│       └─ entity
//	│           └─ key      of the entity, and below it its connections
//	├─ managers             keys that may manage the namespace, each up to half of the process
//	unsynced            messages that are not on disk yet: a tree of its own; shared
//	└─ key, or entity   with its connections, each up to a quarter of unsynced
//	stored              what clients have made durable: a tree of its own
//	├─ messages         up to three quarters of it; what they grow beyond that counts only here
//	├─ definitions      up to half
//	└─ groups           up to a quarter
//	reserve             an eighth of messages, for queues with few of them: a tree of its own
//
// Of a shared account each key, or entity, may use as much as is still free: the first half of
// it, the next one half of what is left. So whatever keys of others use, there is memory for
// one more; a sixteenth of the process is left for peers that log in, and a sixteenth for those
// that may manage the namespace. A key that makes new keys of its entity gets no more memory:
// all of them are charged to the entity.
//
// Unsynced messages do not take the memory of others, and do not wait for it. They end by
// themselves, and a connection that waits for them is not read from, so it could not free
// memory. So the process may exceed its limit by the unsynced messages.
//
// Stored state stays when its connection has gone, and is there again after a
// restart. So it is not charged to a connection, and does not take the memory of
// connections: it has a limit of its own, and what exceeds it is refused.
type Process struct {
	all, unauthenticated, known, managers, unsynced *Account
	stored                                          Stored // the second tree

	mu     sync.Mutex
	owners map[Owner]*owner // of connections that are there; guarded by mu
}

// Owner is whom the memory of a connection is charged to: a key of the namespace, a key of an
// entity and with it the entity. The owner without a key is the entity itself.
type Owner struct {
	Key     string
	Entity  string // empty for a key of the namespace
	Manager bool   // it may manage the namespace
}

// owner is the accounts of an owner.
type owner struct {
	account  *Account
	unsynced *Account
	members  int // guarded by Process.mu
}

// Limits is the memory that a process may use for its peers, in bytes.
type Limits struct {
	Process  int64 // in all; zero is half of what Memory says
	Unsynced int64 // of that, for messages that are not on disk yet; zero is UnsyncedLimit
	Stored   int64 // besides that, for stored state; zero is a quarter of what Memory says
}

// Stored is the accounts of what clients have made durable and the process keeps
// in memory. No kind can take the memory of all others. A request that adds to an
// account takes memory with [Account.TryTake] before anything is written, and is
// refused as by a full queue if there is none. Recovery takes it with
// [Account.Charge]: a start with more than the present limit works.
type Stored struct {
	All         *Account
	Messages    *Account // entries of waiting messages, sessions, fair keys, duplicate windows
	Reserve     *Account // how much of Messages is used of the part for queues with few of them
	Definitions *Account // entities with their rules, policies and keys
	Groups      *Account // consumer groups of event hubs, partitions and their producers
}

// newStored returns the accounts of stored state with so many bytes in all.
func newStored(limit int64) Stored {
	all := New(limit)
	messages := all.Child(limit - limit/4)
	messages.capped = true
	return Stored{
		All: all, Messages: messages, Reserve: New(messages.Limit() / MessagesReserve),
		Definitions: all.Child(limit / 2), Groups: all.Child(limit / 4),
	}
}

// NewProcess returns the tree of a process. Unauthenticated connections have at
// most a quarter of it, and messages that are not on disk yet at most half,
// however little there is.
func NewProcess(l Limits) *Process {
	limit := cmp.Or(l.Process, Memory()/2, unknownMemory)
	all := New(limit)
	unsynced := New(min(cmp.Or(l.Unsynced, UnsyncedLimit), limit/2))
	unsynced.shared = true
	common := all.Child(limit - limit/16)
	known := common.Child(limit - limit/8)
	known.shared = true
	return &Process{
		all:             all,
		unauthenticated: common.Child(min(AllUnauthenticatedLimit, limit/4)),
		known:           known,
		managers:        all.Child(limit),
		unsynced:        unsynced,
		stored:          newStored(cmp.Or(l.Stored, Memory()/4, unknownMemory/2)),
		owners:          map[Owner]*owner{},
	}
}

// Unlimited returns a tree that limits only unsynced messages, for tests.
func Unlimited() *Process {
	return NewProcess(Limits{Process: math.MaxInt64 / 4, Stored: math.MaxInt64 / 4})
}

// NoLimit returns an account that accepts everything.
func NoLimit() *Account { return New(math.MaxInt64 / 4) }

// Unsynced returns the account of the messages that are not on disk yet.
func (p *Process) Unsynced() *Account { return p.unsynced }

// Stored returns the accounts of what clients have made durable.
func (p *Process) Stored() Stored { return p.stored }

// Unauthenticated returns the account of all connections that have not logged in.
func (p *Process) Unauthenticated() *Account { return p.unauthenticated }

// Member is the account of a connection: an unauthenticated one until it has
// proved a key. Its methods may be called from any goroutine.
type Member struct {
	*Account
	process  *Process
	unsynced *Account

	mu    sync.Mutex
	owner Owner // guarded by mu
	in    bool  // owner is set; guarded by mu
	out   bool  // it has left; guarded by mu
}

// Enter returns the account of a connection that has just come.
func (p *Process) Enter() *Member {
	return &Member{Account: p.unauthenticated.Child(UnauthenticatedLimit), process: p,
		unsynced: p.unsynced.Child(p.unsynced.limit / connectionShare)}
}

// connectionShare is which part of the memory for messages that are not on disk yet one
// connection can have.
const connectionShare = 4

// Unsynced is the account of the messages of the connection that are not on disk yet.
func (m *Member) Unsynced() *Account { return m.unsynced }

// Prove moves the account below that of an owner, with all that is charged to it. It reports
// whether the owner has space for it. Only the first owner counts.
func (m *Member) Prove(o Owner) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.in || m.out {
		return true
	}
	m.owner, m.in = o, true
	k := m.process.join(o)
	m.Move(k.account, min(k.account.Limit()/2, ConnectionLimit))
	m.unsynced.Move(k.unsynced, m.unsynced.Limit())
	return !k.account.exceeded()
}

// Leave says that the connection has ended. The owners of what is still charged
// to its account release it later.
func (m *Member) Leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.in {
		m.process.leave(m.owner)
		m.in = false
	}
	m.out = true
}

// join returns the accounts of an owner, which are there until as many have left.
func (p *Process) join(o Owner) *owner {
	p.mu.Lock()
	defer p.mu.Unlock()
	above := &owner{account: p.known, unsynced: p.unsynced}
	switch {
	case o.Manager:
		above.account = p.managers
	case o.Entity != "":
		above = p.enter(Owner{Entity: o.Entity}, above)
	}
	return p.enter(o, above)
}

// enter counts one more member of the accounts below others; mu is held.
func (p *Process) enter(o Owner, above *owner) *owner {
	k := p.owners[o]
	if k == nil {
		k = &owner{account: above.account.Child(p.all.Limit() / 2), unsynced: above.unsynced.Child(p.unsynced.Limit())}
		p.owners[o] = k
	}
	k.members++
	return k
}

func (p *Process) leave(o Owner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exit(o)
	if o.Entity != "" && !o.Manager {
		p.exit(Owner{Entity: o.Entity})
	}
}

// exit counts one member less; mu is held.
func (p *Process) exit(o Owner) {
	k := p.owners[o]
	if k.members--; k.members == 0 {
		delete(p.owners, o)
	}
}

// Usage is how much of the memory for peers is used, in bytes.
type Usage struct {
	Limit           int64
	Used            int64
	Unauthenticated int64 // of Used
	Known           int64 // of Used
	Unsynced        int64 // of Used
	Waiting         int   // charges that wait for space

	StoredLimit       int64
	StoredMessages    int64
	MessagesLimit     int64 // of StoredMessages
	StoredDefinitions int64
	StoredGroups      int64
}

// Usage returns how much is used.
func (p *Process) Usage() Usage {
	messages, definitions, groups := p.stored.Messages.Used(), p.stored.Definitions.Used(), p.stored.Groups.Used()
	limit, messagesLimit := p.stored.All.Limit(), p.stored.Messages.Limit()
	unsynced, waiting := p.unsynced.Used(), p.unsynced.waiting()
	t := p.all.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	return Usage{
		StoredLimit: limit, StoredMessages: messages, MessagesLimit: messagesLimit, StoredDefinitions: definitions, StoredGroups: groups,
		Limit: p.all.limit, Used: p.all.used + unsynced,
		Unauthenticated: p.unauthenticated.used, Known: p.known.used + p.managers.used, Unsynced: unsynced,
		Waiting: t.waiting.Len() + waiting,
	}
}
