// SPDX-License-Identifier: Apache-2.0

package entries

import "slices"

// SeqList has the sequence numbers of messages in the order of their keys. It contains
// exactly the messages that were added and not removed. Every operation visits at most a
// few chunks, wherever in the list it is and however long the list is.
//
//	few:   [ 7 9 12 ]                            up to shortList, in one slice
//	many:  low 7        low 310       low 577    then in chunks; low is a key that
//	       [· · 7 9 12] [310 311 … ·] [577 …  ]  is not after any in its chunk
//
// A chunk has free space behind its numbers and, after removals there, in front. A full
// chunk is divided; two small neighbours are joined. Only sequence numbers are stored,
// eight bytes for each message: the order time is in the entry.
type SeqList struct {
	n    int
	few  []SeqNo
	many *seqChunks // instead of few, from shortList on
}

const (
	shortList = 16
	// leastChunked is the length from which on a list leaves the chunks that it has grown.
	leastChunked = 4
	chunkSeqs    = 125 // a chunk takes 1024 bytes
)

type seqChunks struct {
	list  []*seqChunk // those before head are nil
	head  int
	spare *seqChunk
}

type seqChunk struct {
	low      OrderKey
	from, to uint8 // the sequence numbers are seqs[from:to]
	seqs     [chunkSeqs]SeqNo
}

// listOrder says by what a list is ordered.
type listOrder uint8

const (
	byOrderTime listOrder = iota // the older first, then the lower sequence number
	byNumber                     // for a session, in which only sequence numbers count
)

// keyOf returns the key of a message in a list.
func (s *Store) keyOf(seq SeqNo, by listOrder) OrderKey {
	if by == byNumber {
		return OrderKey{0, seq}
	}
	return OrderKey{s.Get(seq).OrderTime, seq}
}

// Len returns how many messages the list has.
func (l *SeqList) Len() int { return l.n }

// reset empties the list and keeps the memory of a short one.
func (l *SeqList) reset() {
	few := l.few
	if l.many != nil {
		few = nil
	}
	*l = SeqList{few: few}
}

// First returns the first message; the list is not empty.
func (l *SeqList) First() SeqNo {
	if l.many == nil {
		return l.few[0]
	}
	c := l.many.list[l.many.head]
	return c.seqs[c.from]
}

// last returns the last message; the list is not empty.
func (l *SeqList) last() SeqNo {
	if l.many == nil {
		return l.few[len(l.few)-1]
	}
	c := l.many.list[len(l.many.list)-1]
	return c.seqs[c.to-1]
}

// push adds a message whose key is not before any other in the list.
func (l *SeqList) push(k OrderKey) {
	l.n++
	if l.many != nil {
		l.many.push(k)
		return
	}
	if len(l.few) < shortList {
		l.few = append(l.few, k.Seq)
		return
	}
	l.grow()
	l.many.push(k)
}

// grow moves the sequence numbers of few into a chunk.
func (l *SeqList) grow() {
	c := &seqChunk{to: uint8(len(l.few))}
	copy(c.seqs[:], l.few)
	l.many = &seqChunks{list: []*seqChunk{c}} // low is before every key
	l.few = nil
}

// insert adds a message anywhere.
func (l *SeqList) insert(s *Store, k OrderKey, by listOrder) {
	l.n++
	switch {
	case l.many == nil && len(l.few) < shortList:
		at := s.searchList(l.few, k, by)
		l.few = slices.Insert(l.few, at, k.Seq)
	case l.many == nil:
		l.grow()
		fallthrough
	default:
		l.many.insert(s, k, by)
	}
}

// Put adds a message to a list by sequence number.
func (l *SeqList) Put(s *Store, seq SeqNo) {
	if l.n == 0 || seq > l.last() {
		l.push(OrderKey{0, seq})
	} else {
		l.insert(s, OrderKey{0, seq}, byNumber)
	}
}

// searchList returns how many of the sorted sequence numbers have keys before k.
func (s *Store) searchList(seqs []SeqNo, k OrderKey, by listOrder) int {
	lo, hi := 0, len(seqs)
	for lo < hi {
		mid := (lo + hi) / 2
		if s.keyOf(seqs[mid], by).Before(k) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// PopFirst removes the first message.
func (l *SeqList) PopFirst() {
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
	l.shrink()
}

// popLast removes the last message.
func (l *SeqList) popLast() {
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
	l.shrink()
}

// Remove removes a message that is in the list.
func (l *SeqList) Remove(k OrderKey) {
	l.n--
	if l.many == nil {
		at := slices.Index(l.few, k.Seq)
		l.few = l.few[:at+copy(l.few[at:], l.few[at+1:])]
		return
	}
	l.many.remove(k)
	l.shrink()
}

// shrink gives back the chunks of a list that has become short: a queue may have a list for
// each session, fair key and level.
func (l *SeqList) shrink() {
	if l.n > leastChunked {
		return
	}
	few := make([]SeqNo, 0, leastChunked)
	for _, c := range l.many.list[l.many.head:] {
		few = append(few, c.seqs[c.from:c.to]...)
	}
	l.few, l.many = few, nil
}

// Discard removes a message of a list by sequence number, if it is there.
func (l *SeqList) Discard(seq SeqNo) {
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
	if at, ok := l.After(seq - 1); ok && at == seq {
		l.Remove(OrderKey{0, seq})
	}
}

// After returns the first message whose sequence number is above seq, in a list by
// sequence number.
func (l *SeqList) After(seq SeqNo) (SeqNo, bool) {
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
	i := m.find(OrderKey{0, seq})
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
func (m *seqChunks) find(k OrderKey) int {
	lo, hi := m.head+1, len(m.list)
	for lo < hi {
		mid := (lo + hi) / 2
		if k.Before(m.list[mid].low) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo - 1
}

func (m *seqChunks) push(k OrderKey) {
	c := m.list[len(m.list)-1]
	if c.to == chunkSeqs {
		c = m.addChunk(len(m.list), k)
	}
	c.seqs[c.to] = k.Seq
	c.to++
}

// addChunk inserts an empty chunk at an index of the list.
func (m *seqChunks) addChunk(at int, low OrderKey) *seqChunk {
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

// drop removes an empty chunk from the list. The last chunk stays.
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

func (m *seqChunks) insert(s *Store, k OrderKey, by listOrder) {
	i := m.find(k)
	c := m.list[i]
	if i == m.head && k.Before(c.low) {
		c.low = k
	}
	if c.to-c.from == chunkSeqs {
		const half = chunkSeqs / 2
		next := m.addChunk(i+1, s.keyOf(c.seqs[half], by))
		next.to = uint8(copy(next.seqs[:], c.seqs[half:]))
		c.to = half
		if !k.Before(next.low) {
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
	c.seqs[at] = k.Seq
}

func (m *seqChunks) remove(k OrderKey) {
	i := m.find(k)
	c := m.list[i]
	at := int(c.from) + slices.Index(c.seqs[c.from:c.to], k.Seq)
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

// join moves the numbers of a chunk into the one before it, or those of the one behind
// into it, if the result is at most half full.
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
