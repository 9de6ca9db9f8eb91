// SPDX-License-Identifier: Apache-2.0

package order

import (
	"slices"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// fairKey is a key that is served in round robin with others. It exists while it has
// messages, or has rate debt.
type fairKey struct {
	name          string
	groups        int   // that refer to it
	weight        int64 // turns in a row, and messages in flight that count as one
	cap           int64 // messages in flight; zero is no limit
	every         int64 // nanoseconds between two messages; zero is no rate
	burst         int64 // nanoseconds that may be used in advance
	inFlight      int64
	rateUsedUntil int64      // its rate is used up to this time
	started       uint64     // position in the order in which keys were started; zero is not started
	wakes         int64      // when its item in keys.wakes is due; zero is none
	lists         []*keyList // its messages, by level
}

// keyTable numbers fair keys. Number zero is that of all messages without a key; it
// always exists.
type keyTable struct {
	byName      entries.Table[string, uint32]
	all         []*fairKey // nil: the number is free
	free        []uint32
	spare       []*fairKey
	shares      map[string]ordering.Share
	others      ordering.Share
	wakes       heap[wake]
	lastStarted uint64 // highest number of a key started
	renumbered  uint64 // how often the keys were numbered anew
	indebted    int64  // bytes of keys without messages that are kept for their debt
	lanes       int64  // bytes of lists beyond the first of each key, and of rings
	spareLists  []*keyList
}

// longest is the longest interval, and the longest burst, that a rate can have: 36
// years. With it, no rateUsedUntil overflows before the year 2180.
const longest = 1 << 60

// wake is when a key may be served again, or removed.
type wake struct {
	at  int64
	key uint32
}

func (a wake) before(b wake) bool { return a.at < b.at || a.at == b.at && a.key < b.key }

// configure resets the table for an order.
func (ks *keyTable) configure(o ordering.Order) {
	*ks = keyTable{shares: make(map[string]ordering.Share, len(o.Shares)), others: o.DefaultShare}
	for _, s := range o.Shares {
		ks.shares[s.Key] = s
	}
	ks.byName.Set("", 0)
	ks.all = []*fairKey{new(fairKey)}
	ks.setUp(ks.all[0], "")
}

// setUp makes an unused key that of a name.
func (ks *keyTable) setUp(k *fairKey, name string) {
	s, ok := ks.shares[name]
	if !ok {
		s = ks.others
	}
	*k = fairKey{lists: k.lists[:0], name: name, weight: max(int64(s.Weight), 1), cap: int64(s.Cap)}
	if s.Rate > 0 {
		every := min(max(float64(time.Second)/s.Rate, 1), longest)
		k.every = int64(every)
		k.burst = int64(min(every*float64(max(s.Burst, 1)-1), longest))
	}
}

// join counts a group of messages.
func (ks *keyTable) join(name string) uint32 {
	n, ok := ks.byName.Get(name)
	switch {
	case ok && ks.all[n].groups == 0:
		ks.indebted -= entries.GroupCost("", name)
	case !ok:
		name = strings.Clone(name)
		if k := len(ks.free); k > 0 {
			n, ks.free = ks.free[k-1], ks.free[:k-1]
		} else {
			n = uint32(len(ks.all))
			ks.all = append(ks.all, nil)
		}
		if k := len(ks.spare); k > 0 {
			ks.all[n], ks.spare = ks.spare[k-1], ks.spare[:k-1]
		} else {
			ks.all[n] = new(fairKey)
		}
		ks.setUp(ks.all[n], name)
		ks.byName.Set(name, n)
	}
	ks.all[n].groups++
	return n
}

// leave counts a group less. A key with rate debt is kept until the debt is paid.
// Otherwise a sender whose key never has more than one message would get a fresh limiter
// each time.
func (ks *keyTable) leave(n uint32, now int64) {
	k := ks.all[n]
	k.groups--
	if k.groups > 0 || n == 0 {
		return
	}
	k.started = 0
	if k.rateUsedUntil > now {
		ks.indebted += entries.GroupCost("", k.name)
		ks.wakeAt(n, k.rateUsedUntil)
		return
	}
	ks.forget(n)
}

const (
	keptKeys  = 1024 // numbers that have memory while there is no key
	spareKeys = 256  // keys that are kept for reuse

	keptLists  = 4    // lists for which a key without any has memory
	spareLists = 1024 // lists of keys that are kept for reuse
)

func (ks *keyTable) forget(n uint32) {
	k := ks.all[n]
	ks.byName.Delete(k.name)
	if len(ks.spare) < spareKeys {
		*k = fairKey{lists: k.lists[:0]}
		ks.spare = append(ks.spare, k)
	}
	ks.all[n] = nil
	ks.free = append(ks.free, n)
	if len(ks.free) == len(ks.all)-1 && len(ks.all) > keptKeys {
		ks.all, ks.free = []*fairKey{ks.all[0]}, nil
	}
}

// newList returns an empty list of a key in a level.
func (ks *keyTable) newList(n uint32, level ordering.Level) *keyList {
	l := new(keyList)
	if k := len(ks.spareLists); k > 0 {
		l, ks.spareLists = ks.spareLists[k-1], ks.spareLists[:k-1]
	}
	if l.level, l.fairKey = level, n; len(ks.all[n].lists) > 0 {
		ks.lanes += listCost
	}
	l.UseBuffer(l.buffer[:])
	return l
}

// dropList removes an empty list.
func (ks *keyTable) dropList(l *keyList) {
	owner := ks.all[l.fairKey]
	i := slices.Index(owner.lists, l)
	switch owner.lists = slices.Delete(owner.lists, i, i+1); {
	case len(owner.lists) > 0:
		ks.lanes -= listCost
	case cap(owner.lists) > keptLists:
		owner.lists = nil
	}
	kept := l.SortedList
	kept.Reset()
	*l = keyList{SortedList: kept}
	if len(ks.spareLists) < spareLists {
		ks.spareLists = append(ks.spareLists, l)
	}
}

// wakeAt makes Tick check a key at some time, or earlier.
func (ks *keyTable) wakeAt(n uint32, at int64) {
	if k := ks.all[n]; k.wakes == 0 || at < k.wakes {
		k.wakes = at
		ks.wakes.push(wake{at, n})
	}
}

func (ks *keyTable) deadline() int64 {
	if len(ks.wakes) == 0 {
		return entries.Never
	}
	return ks.wakes[0].at
}

// eligibleAt returns when the rate of a key allows the next delivery. It is GCRA:
// rateUsedUntil is the theoretical arrival time, burst the tolerance. With 10/s and burst
// 5, every is 100 ms and burst 4*100 ms: five deliveries at 0 set rateUsedUntil to 500 ms,
// and the sixth is eligible at 500-400 = 100 ms.
func (k *fairKey) eligibleAt() int64 {
	if k.every == 0 {
		return 0
	}
	return k.rateUsedUntil - k.burst
}

// atCap reports whether a key has reached its limit of messages in flight.
func (k *fairKey) atCap() bool { return k.cap > 0 && k.inFlight >= k.cap }

// at returns a key by its number, nil if there is none any more.
func (ks *keyTable) at(n uint32) *fairKey {
	if int(n) >= len(ks.all) {
		return nil
	}
	return ks.all[n]
}

// listed returns the lists of a key, which may be nil.
func (k *fairKey) listed() []*keyList {
	if k == nil {
		return nil
	}
	return k.lists
}

// load is the messages in flight divided by the weight. The lowest load is served first.
func (k *fairKey) load() int { return int(min(k.inFlight/k.weight, maxLoad)) }

// IncInFlight counts a message of its key in flight, DecInFlight subtracts it.
func (x *Index) IncInFlight(e *entries.Entry) { x.addInFlight(e, 1) }
func (x *Index) DecInFlight(e *entries.Entry) { x.addInFlight(e, -1) }

// addInFlight adds to the messages in flight of a key.
func (x *Index) addInFlight(e *entries.Entry, by int64) {
	if x.order.Fair {
		x.addInFlightHere(e, by)
	}
	if x.next.arrangement != nil {
		x.addInFlightSecond(e, by)
	}
}

func (x *Index) addInFlightHere(e *entries.Entry, by int64) {
	if !x.order.Fair {
		return
	}
	n := x.fairKey(e.Group)
	x.keys.all[n].inFlight += by
	x.regulate(n)
}

// WakeKeys makes up to so many keys eligible whose rate allows it by now.
func (x *Index) WakeKeys(at int64, most int) {
	for ; most > 0 && len(x.keys.wakes) > 0 && x.keys.wakes[0].at <= at; most-- {
		w := x.keys.wakes.pop()
		k := x.keys.at(w.key)
		if k == nil || k.wakes != w.at {
			continue // an earlier item was handled instead
		}
		k.wakes = 0
		switch {
		case k.groups > 0 || w.key == 0:
			x.regulate(w.key)
		case k.rateUsedUntil > at:
			x.keys.wakeAt(w.key, k.rateUsedUntil)
		default:
			x.keys.indebted -= entries.GroupCost("", k.name)
			x.keys.forget(w.key)
		}
	}
}

// regulate moves the lists of a key to the ring of its load, or out of all rings.
func (x *Index) regulate(n uint32) {
	k := x.keys.all[n]
	opens := k.eligibleAt()
	shut := k.atCap() || opens > x.Clock
	if opens > x.Clock {
		x.keys.wakeAt(n, opens)
	}
	for _, line := range k.lists {
		lane := x.levels.all[line.level].(*fairLane)
		if shut {
			lane.makeIneligible(line)
		} else {
			lane.makeEligible(x, line, k.load())
		}
		x.levels.changed(line.level)
	}
}

// KeyLimit reports whether a limit of its fair key blocks a message: its cap, or its rate
// until a time.
func (x *Index) KeyLimit(e *entries.Entry) (atCap bool, until int64) {
	k := x.keys.all[x.fairKey(e.Group)]
	switch {
	case !x.order.Fair:
	case k.atCap():
		return true, 0
	case k.eligibleAt() > x.Clock:
		return false, k.eligibleAt()
	}
	return false, 0
}

// KnownKeys returns how many fair keys exist.
func (x *Index) KnownKeys() int { return x.keys.byName.Len() }
