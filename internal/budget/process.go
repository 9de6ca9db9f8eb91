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

	// unknownMemory is what peers may use when the amount of memory is unknown.
	unknownMemory = 1 << 30
)

// Process is the memory that the process uses for its peers, as a tree of
// accounts:
//
//	process
//	├─ unauthenticated  connections that have not logged in, each up to UnauthenticatedLimit
//	├─ known            one account for each key, with up to half of the process
//	│   └─ key          and below it one for each connection, with up to half of that
//	└─ unsynced         messages that are not on disk yet
//	stored              what clients have made durable: a tree of its own
//	├─ messages         up to three quarters of it
//	├─ definitions      up to half
//	└─ groups           up to a quarter
//
// Unsynced messages count as part of the process, but do not wait for memory of
// others. They end by themselves, and a connection that waits for them is not
// read from, so it could not free memory. So the process may exceed its limit
// by the unsynced messages.
//
// Stored state stays when its connection has gone, and is there again after a
// restart. So it is not charged to a connection, and does not take the memory of
// connections: it has a limit of its own, and what exceeds it is refused.
type Process struct {
	all, unauthenticated, known, unsynced *Account
	stored                                Stored // the second tree

	mu   sync.Mutex
	keys map[string]*key // of connections that are there; guarded by mu
}

// key is the account of a key.
type key struct {
	account *Account
	members int // guarded by Process.mu
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
	Definitions *Account // entities with their rules, policies and keys
	Groups      *Account // consumer groups of event hubs, partitions and their producers
}

// newStored returns the accounts of stored state with so many bytes in all.
func newStored(limit int64) Stored {
	all := New(limit)
	return Stored{
		All: all, Messages: all.Child(limit - limit/4), Definitions: all.Child(limit / 2), Groups: all.Child(limit / 4),
	}
}

// NewProcess returns the tree of a process. Unauthenticated connections have at
// most a quarter of it, and messages that are not on disk yet at most half,
// however little there is.
func NewProcess(l Limits) *Process {
	limit := cmp.Or(l.Process, Memory()/2, unknownMemory)
	all := New(limit)
	unsynced := all.Child(min(cmp.Or(l.Unsynced, UnsyncedLimit), limit/2))
	unsynced.apart = true
	return &Process{
		all:             all,
		unauthenticated: all.Child(min(AllUnauthenticatedLimit, limit/4)),
		known:           all.Child(limit),
		unsynced:        unsynced,
		stored:          newStored(cmp.Or(l.Stored, Memory()/4, unknownMemory/2)),
		keys:            map[string]*key{},
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
	process *Process

	mu  sync.Mutex
	key string // guarded by mu
	in  bool   // key is set; guarded by mu
	out bool   // it has left; guarded by mu
}

// Enter returns the account of a connection that has just come.
func (p *Process) Enter() *Member {
	return &Member{Account: p.unauthenticated.Child(UnauthenticatedLimit), process: p}
}

// Prove moves the account below the account of a key, with all that is charged
// to it. It reports whether the key has space for it; others may have used up
// the process. Only the first key counts.
func (m *Member) Prove(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.in || m.out {
		return true
	}
	m.key, m.in = name, true
	k := m.process.join(name)
	m.Move(k, min(k.Limit()/2, ConnectionLimit))
	return k.Used() <= k.Limit()
}

// Leave says that the connection has ended. The owners of what is still charged
// to its account release it later.
func (m *Member) Leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.in {
		m.process.leave(m.key)
		m.in = false
	}
	m.out = true
}

// join returns the account of a key, which is there until as many have left.
func (p *Process) join(name string) *Account {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.keys[name]
	if k == nil {
		k = &key{account: p.known.Child(p.all.Limit() / 2)}
		p.keys[name] = k
	}
	k.members++
	return k.account
}

func (p *Process) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.keys[name]
	if k.members--; k.members == 0 {
		delete(p.keys, name)
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
	StoredDefinitions int64
	StoredGroups      int64
}

// Usage returns how much is used.
func (p *Process) Usage() Usage {
	messages, definitions, groups := p.stored.Messages.Used(), p.stored.Definitions.Used(), p.stored.Groups.Used()
	t := p.all.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	return Usage{
		StoredLimit: p.stored.All.Limit(), StoredMessages: messages, StoredDefinitions: definitions, StoredGroups: groups,
		Limit: p.all.limit, Used: p.all.used,
		Unauthenticated: p.unauthenticated.used, Known: p.known.used, Unsynced: p.unsynced.used,
		Waiting: t.waiting.Len(),
	}
}
