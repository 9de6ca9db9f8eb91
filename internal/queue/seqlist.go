// SPDX-License-Identifier: Apache-2.0

package queue

import "slices"

// seqList is the numbers of messages in the order of their keys. It holds exactly
// the messages that were added and not removed; no operation takes longer than a
// few chunks, wherever in the list it is and however many messages there are.
//
//	few:   [ 7 9 12 ]                            up to shortList, in one slice
//	many:  low 7        low 310       low 577    then in chunks; low is a key that
//	       [· · 7 9 12] [310 311 … ·] [577 …  ]  is not after any in its chunk
//
// A chunk has room in front after messages were removed there, and behind. One that
// is full is divided; two neighbours that have become small are joined. Only the
// numbers are kept, eight bytes for each message: the age is in the entry.
type seqList struct {
	n    int
	few  []SeqNo
	many *seqChunks // instead of few, from shortList on
}

const (
	shortList = 16
	chunkSeqs = 125 // a chunk takes 1024 bytes
)

type seqChunks struct {
	list  []*seqChunk // those before head are nil
	head  int
	spare *seqChunk
}

type seqChunk struct {
	low      orderKey
	from, to uint8 // the numbers are seqs[from:to]
	seqs     [chunkSeqs]SeqNo
}

// keyOrder says by what a list is ordered.
type listOrder uint8

const (
	byOrderTime listOrder = iota // the older first, then the lower number
	byNumber                     // for a session, in which only numbers count
)

// keyOf returns the key of a message in a list.
func (s *store) keyOf(seq SeqNo, by listOrder) orderKey {
	if by == byNumber {
		return orderKey{0, seq}
	}
	return orderKey{s.get(seq).orderTime, seq}
}

// first returns the first message; the list is not empty.
func (l *seqList) first() SeqNo {
	if l.many == nil {
		return l.few[0]
	}
	c := l.many.list[l.many.head]
	return c.seqs[c.from]
}

// last returns the last message; the list is not empty.
func (l *seqList) last() SeqNo {
	if l.many == nil {
		return l.few[len(l.few)-1]
	}
	c := l.many.list[len(l.many.list)-1]
	return c.seqs[c.to-1]
}

// push adds a message that no other in the list is after.
func (l *seqList) push(k orderKey) {
	l.n++
	if l.many != nil {
		l.many.push(k)
		return
	}
	if len(l.few) < shortList {
		l.few = append(l.few, k.seq)
		return
	}
	l.grow()
	l.many.push(k)
}

// grow moves what few holds into a chunk.
func (l *seqList) grow() {
	c := &seqChunk{to: uint8(len(l.few))}
	copy(c.seqs[:], l.few)
	l.many = &seqChunks{list: []*seqChunk{c}} // low is before all
	l.few = nil
}

// insert adds a message anywhere.
func (l *seqList) insert(s *store, k orderKey, by listOrder) {
	l.n++
	switch {
	case l.many == nil && len(l.few) < shortList:
		at := s.searchList(l.few, k, by)
		l.few = slices.Insert(l.few, at, k.seq)
	case l.many == nil:
		l.grow()
		fallthrough
	default:
		l.many.insert(s, k, by)
	}
}

// put adds a message to a list by number.
func (l *seqList) put(s *store, seq SeqNo) {
	if l.n == 0 || seq > l.last() {
		l.push(orderKey{0, seq})
	} else {
		l.insert(s, orderKey{0, seq}, byNumber)
	}
}

// search returns how many of the numbers, which are in order, have keys before k.
func (s *store) searchList(seqs []SeqNo, k orderKey, by listOrder) int {
	lo, hi := 0, len(seqs)
	for lo < hi {
		mid := (lo + hi) / 2
		if s.keyOf(seqs[mid], by).before(k) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// popFirst removes the first message.
func (l *seqList) popFirst() {
	l.n--
	if l.many == nil {
		l.few = l.few[:copy(l.few, l.few[1:])]
		return
	}
	m := l.many
	c := m.list[m.head]
	c.from++
	if c.from == c.to {
		m.drop(m.head)
	}
}

// popLast removes the last message.
func (l *seqList) popLast() {
	l.n--
	if l.many == nil {
		l.few = l.few[:len(l.few)-1]
		return
	}
	m := l.many
	at := len(m.list) - 1
	c := m.list[at]
	c.to--
	if c.from == c.to {
		m.drop(at)
	}
}

// remove removes a message that is in the list.
func (l *seqList) remove(k orderKey) {
	l.n--
	if l.many == nil {
		at := slices.Index(l.few, k.seq)
		l.few = l.few[:at+copy(l.few[at:], l.few[at+1:])]
		return
	}
	l.many.remove(k)
}

// discard removes a message of a list by number if it is there.
func (l *seqList) discard(seq SeqNo) {
	if l.n == 0 {
		return
	}
	if l.many == nil {
		if at := slices.Index(l.few, seq); at >= 0 {
			l.n--
			l.few = l.few[:at+copy(l.few[at:], l.few[at+1:])]
		}
		return
	}
	if at, ok := l.after(seq - 1); ok && at == seq {
		l.remove(orderKey{0, seq})
	}
}

// after returns the first message whose number is above seq, in a list by number.
func (l *seqList) after(seq SeqNo) (SeqNo, bool) {
	if l.many == nil {
		at, found := slices.BinarySearch(l.few, seq)
		if found {
			at++
		}
		if at == len(l.few) {
			return 0, false
		}
		return l.few[at], true
	}
	m := l.many
	if l.n == 0 {
		return 0, false
	}
	i := m.find(orderKey{0, seq})
	c := m.list[i]
	at, found := slices.BinarySearch(c.seqs[c.from:c.to], seq)
	if found {
		at++
	}
	if at += int(c.from); at < int(c.to) {
		return c.seqs[at], true
	}
	if i+1 == len(m.list) {
		return 0, false
	}
	c = m.list[i+1]
	return c.seqs[c.from], true
}

// find returns the chunk that a key belongs to; there is at least one.
func (m *seqChunks) find(k orderKey) int {
	lo, hi := m.head+1, len(m.list)
	for lo < hi {
		mid := (lo + hi) / 2
		if k.before(m.list[mid].low) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo - 1
}

func (m *seqChunks) push(k orderKey) {
	c := m.list[len(m.list)-1]
	if c.to == chunkSeqs {
		c = m.addChunk(len(m.list), k)
	}
	c.seqs[c.to] = k.seq
	c.to++
}

// addChunk makes an empty chunk at a place in the list.
func (m *seqChunks) addChunk(at int, low orderKey) *seqChunk {
	c := m.spare
	m.spare = nil
	if c == nil {
		c = new(seqChunk)
	}
	c.low, c.from, c.to = low, 0, 0
	if m.head > 16 && m.head > len(m.list)/2 { // close the gap in front
		n := copy(m.list, m.list[m.head:])
		clear(m.list[n:])
		m.list, at, m.head = m.list[:n], at-m.head, 0
	}
	m.list = slices.Insert(m.list, at, c)
	return c
}

// drop takes an empty chunk out of the list. The last one stays.
func (m *seqChunks) drop(at int) {
	c := m.list[at]
	c.from, c.to = 0, 0
	if m.head+1 == len(m.list) {
		return
	}
	m.spare = c
	if at == m.head {
		m.list[at] = nil
		m.head++
		return
	}
	m.list = slices.Delete(m.list, at, at+1)
}

func (m *seqChunks) insert(s *store, k orderKey, by listOrder) {
	i := m.find(k)
	c := m.list[i]
	if i == m.head && k.before(c.low) {
		c.low = k
	}
	if c.to-c.from == chunkSeqs {
		const half = chunkSeqs / 2
		next := m.addChunk(i+1, s.keyOf(c.seqs[half], by))
		next.to = uint8(copy(next.seqs[:], c.seqs[half:]))
		c.to = half
		if !k.before(next.low) {
			c = next
		}
	}
	at := int(c.from) + s.searchList(c.seqs[c.from:c.to], k, by)
	if c.to < chunkSeqs {
		copy(c.seqs[at+1:c.to+1], c.seqs[at:c.to])
		c.to++
	} else {
		copy(c.seqs[c.from-1:at-1], c.seqs[c.from:at])
		c.from--
		at--
	}
	c.seqs[at] = k.seq
}

func (m *seqChunks) remove(k orderKey) {
	i := m.find(k)
	c := m.list[i]
	at := int(c.from) + slices.Index(c.seqs[c.from:c.to], k.seq)
	if at-int(c.from) < int(c.to)-at {
		copy(c.seqs[c.from+1:at+1], c.seqs[c.from:at])
		c.from++
	} else {
		copy(c.seqs[at:c.to-1], c.seqs[at+1:c.to])
		c.to--
	}
	if c.from == c.to {
		m.drop(i)
		return
	}
	m.join(i)
}

// join moves what a chunk has into the one before it, or what the one behind it has
// into it, if that leaves a chunk that is no more than half full.
func (m *seqChunks) join(i int) {
	size := func(i int) int { return int(m.list[i].to - m.list[i].from) }
	switch {
	case size(i) > chunkSeqs/4:
		return
	case i > m.head && size(i-1)+size(i) <= chunkSeqs/2:
		i--
	case i+1 < len(m.list) && size(i)+size(i+1) <= chunkSeqs/2:
	default:
		return
	}
	c, next := m.list[i], m.list[i+1]
	n := copy(c.seqs[:], c.seqs[c.from:c.to])
	n += copy(c.seqs[n:], next.seqs[next.from:next.to])
	c.from, c.to = 0, uint8(n)
	m.drop(i + 1)
}
