// SPDX-License-Identifier: Apache-2.0

package queue

// key is the place of a message among its like: the older first, then the lower
// number.
type key struct {
	at  int64
	seq SeqNo
}

func (a key) before(b key) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// line keeps messages in the order of their keys. Those at the end of a long line
// lie in a row, one beside the other, and need nothing else. All others, as those
// that came back and are older than the last of the row, are in a list. What is
// first is the first of the row or of the list.
type line struct {
	list seqList
	row  *row // nil until the line is very long
	tail key  // no message in the line is after it
}

// longLine is how many messages a line has before those who come are laid in a row.
const longLine = 256

// rowed returns how many messages are in the row.
func (l *line) rowed() int {
	if l.row == nil {
		return 0
	}
	return l.row.n
}

// end returns the row in which a new message should be laid that is about to be
// added to the line; nil if with the rest.
func (l *line) end(q *Queue, k key) *row {
	if l.rowed() == 0 && l.list.n < longLine || k.before(l.tail) {
		return nil
	}
	if l.row == nil {
		l.row = new(row)
	}
	if last := &q.msgs.all[l.row.last]; last.used == shelfLen && last.waiting <= thin && l.row.last != l.row.first {
		l.thinOut(q, l.row.last) // it is about to be in the middle
	}
	l.row.fresh = k.seq
	return l.row
}

// add adds a message.
func (l *line) add(q *Queue, k key, e *entry) {
	switch {
	case l.row != nil && l.row.fresh == k.seq: // it lies there already
		q.msgs.enter(l.row, e)
	case k.before(l.tail) && l.list.n > 0:
		l.list.insert(q, k, byEnqueued)
		return
	case k.before(l.tail):
		l.list.push(k)
		return
	default:
		l.list.push(k)
	}
	l.tail = k
}

// first returns the first message.
func (l *line) first(q *Queue) (k key, ok bool) {
	if l.list.n > 0 {
		k, ok = q.keyOf(l.list.first(), byEnqueued), true
	}
	if l.rowed() > 0 {
		n := q.msgs.head(l.row)
		e := q.msgs.at(n)
		if f := (key{e.enqueued, e.seq}); !ok || f.before(k) {
			q.msgs.hot = n
			return f, true
		}
	}
	return k, ok
}

// last returns the last message.
func (l *line) last(q *Queue) (k key, ok bool) {
	if l.list.n > 0 {
		k, ok = q.keyOf(l.list.last(), byEnqueued), true
	}
	if l.rowed() > 0 {
		n := q.msgs.end(l.row)
		e := q.msgs.at(n)
		if f := (key{e.enqueued, e.seq}); !ok || k.before(f) {
			q.msgs.hot = n
			return f, true
		}
	}
	return k, ok
}

// remove removes a message of the line.
func (l *line) remove(q *Queue, k key, e *entry) {
	switch {
	case l.row != nil && e.flags&flagRow != 0:
		if q.msgs.pop(l.row, e) { // mostly it is the first
			return
		}
		n := q.msgs.spotOf(k.seq)
		if q.msgs.exit(l.row, n) {
			l.thinOut(q, n.shelf())
		}
	case l.list.first() == k.seq:
		l.list.popFirst()
	case l.list.last() == k.seq:
		l.list.popLast()
	default:
		l.list.remove(k)
	}
}

// thinOut takes a shelf out of the row. The messages on it go on waiting in the
// list.
func (l *line) thinOut(q *Queue, n uint32) {
	sh := &q.msgs.all[n]
	for i := range sh.used {
		if e := &sh.entries[i]; e.flags&flagRow != 0 {
			e.flags &^= flagRow
			l.row.n--
			l.list.insert(q, key{e.enqueued, e.seq}, byEnqueued)
		}
	}
	q.msgs.unlink(l.row, n)
}
