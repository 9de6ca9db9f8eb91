// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/triagemq/triagemq/internal/vfs"
)

const (
	// readyTarget is how many segments are kept ready: the next one, and the one
	// that is in use while another is made.
	readyTarget = 2
	// spareTarget is how many freed files are kept to be used again, beside the
	// reserve.
	spareTarget = 2
	// firstCapacity is the size of the first segment. Each is four times the
	// last, up to the limit: an empty store is quick to make and small, and a
	// busy one soon has large files. Less than this is not worth a file.
	firstCapacity = 1 << 20
	// idleStock is how much of a store that nobody uses may be ready.
	idleStock = 24 << 20
	// maxSkip is how often at most the disk is looked at, but not tried, after it
	// refused what it said it had.
	maxSkip = 63
)

// stock is the space that appends will need.
type stock struct {
	// ready are formatted segments, numbered on from the active one. Only the
	// holder of the making token adds to them.
	ready []*segment
	// spares are files that can become segments: recycled ones, and the reserve.
	spares []*spare
	held   uint64 // what groups can use of ready, spares and the file in the maker's hands
	spared uint64 // of that, what is in spares

	newest  uint64    // largest capacity of a segment so far; the next is larger
	largest [2]uint64 // the largest need of a group, in this segment and in the last

	// What look found out, in bytes.
	limit  uint64 // a segment is no larger, unless a group needs it
	free   uint64 // on the disk
	margin uint64 // of that, what is left alone
	base   uint64 // of the target

	reserved uint64 // by all owners
	target   uint64 // what senders must leave

	lack     uint64 // need of a sender's group that found nothing ready; zero if none did
	owed     uint64 // need of a group for upkeep that was refused; zero if none was
	waiting  int    // groups for upkeep that wait for the maker
	tooLarge uint64 // need for which no segment could be made; zero if none was too large

	spent   bool   // the last attempt to make a file met a full disk
	refused uint64 // free at that time, if the disk had said that there was enough
	backoff int    // looks to skip after the next such refusal
	skip    int    // looks that are still to be skipped
}

func (s *stock) first() *segment {
	if len(s.ready) == 0 {
		return nil
	}
	return s.ready[0]
}

func (s *stock) emptied() stock {
	return stock{newest: s.newest, limit: s.limit, free: s.free, target: s.target}
}

// capacity returns the size that the next segment should have; mu is held.
func (w *WAL) capacity() uint64 {
	s := &w.stock
	size := min(s.limit, max(firstCapacity, 4*s.newest))
	if need := max(s.largest[0], s.largest[1]); need > 0 {
		size = max(size, w.segmentFor(need))
	}
	return size
}

// least returns the size below which a segment is not worth making.
func (w *WAL) least() uint64 { return min(w.block, firstCapacity) }

// keepable reports whether a file of size bytes is worth keeping as a spare; mu
// is held. One that is too small would stop the growth, but is good enough for
// a reserve that is too small itself.
func (w *WAL) keepable(size uint64) bool {
	s := &w.stock
	if s.spared < s.target || s.spent {
		return size >= w.least()
	}
	return size >= w.capacity() && s.spared+size <= s.target+spareTarget*w.capacity()
}

// firstSegment makes the segment with which a new store begins.
func (w *WAL) firstSegment(number uint64) (*segment, error) {
	p, err := w.allocate(w.least(), w.least(), emergency)
	if err == nil && p == nil {
		err = ErrFull
	}
	if err != nil {
		return nil, err
	}
	if err := zero(p.file, 0, p.size); err != nil {
		return nil, errors.Join(err, p.file.Close())
	}
	s, err := p.format(w.fs, number, w.block)
	if err != nil {
		return nil, errors.Join(err, p.file.Close())
	}
	w.stock.held -= p.room(w.block)
	w.stock.newest = s.head.capacity
	return s, nil
}

// stockUp makes the base of the reserve, before anybody is let in. It takes a few
// milliseconds; what would take longer is left to restock.
func (w *WAL) stockUp() error {
	for {
		w.mu.Lock()
		missing := w.stock.target - min(w.stock.target, w.stock.spared)
		w.mu.Unlock()
		if missing == 0 {
			break
		}
		made, err := w.reserve(missing)
		if err != nil {
			return err
		}
		if !made {
			break // the status says so
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status.Full = false // nothing was known before
	w.review()
	return nil
}

// fits reports whether a group of need bytes has a place; mu is held.
func (w *WAL) fits(need uint64) bool {
	if w.log.room() >= need {
		return true
	}
	for _, s := range w.stock.ready {
		if s.room(headerSize) >= need {
			return true
		}
	}
	return false
}

// supply sees to it that a group of need bytes has a place. It is called by an
// Append for upkeep that cannot go on without, and waits at most until the
// supplier, if that is at work, has cut short what it does.
func (w *WAL) supply(need uint64) error {
	w.mu.Lock()
	w.stock.waiting++
	w.mu.Unlock()
	defer poke(w.low) // Run's supplier has the rest to do, or to try again later
	w.making <- struct{}{}
	defer func() { <-w.making }()

	ok, err := w.provide(need, emergency)
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.stock
	s.waiting--
	if ok && s.owed <= need {
		s.owed = 0
	}
	if err == nil && !ok {
		s.owed = max(s.owed, need)
		err = ErrFull
	}
	w.review()
	return err
}

// provide makes a place for a group of need bytes in the quickest way there is,
// and reports whether it could: it makes the first ready segment larger, or takes a
// spare, or makes a file, or, in an emergency, makes one file of several. The making
// token is held.
func (w *WAL) provide(need uint64, b budget) (bool, error) {
	w.mu.Lock()
	err, done, first := w.usable(), w.fits(need), w.stock.first()
	size := w.segmentFor(need)
	w.mu.Unlock()
	if err != nil || done {
		return done, err
	}
	if first != nil {
		if err := w.enlarge(first, size, b); err != nil {
			return false, err
		}
	}
	w.mu.Lock()
	if w.fits(need) {
		w.mu.Unlock()
		return true, nil
	}
	p := w.takeSpare(size)
	w.mu.Unlock()
	if p == nil {
		p, err = w.allocate(max(size, w.least()), size, b)
	}
	if p == nil && err == nil && b == emergency {
		p, err = w.merge(size)
	}
	if p == nil || err != nil {
		return false, err
	}
	return w.format(p)
}

// enlarge gives a segment that is ready, or became active since, more room, if
// there is any. The making token is held.
func (w *WAL) enlarge(s *segment, capacity uint64, b budget) error {
	old := s.head.capacity // only the holder of the token changes it
	w.look()
	w.mu.Lock()
	enough := capacity > old && w.stock.within(b) >= capacity-old
	w.mu.Unlock()
	if !enough {
		return nil
	}
	err := s.file.Allocate(int64(capacity))
	if errors.Is(err, vfs.ErrNoSpace) || s.gone.Load() {
		return nil
	}
	larger := s.head
	larger.capacity = capacity
	if err == nil {
		err = s.file.Sync() // before the header says so
	}
	if err == nil {
		_, err = s.file.WriteAt(larger.encode(), 0)
	}
	if err == nil {
		err = s.file.Sync()
	}
	if s.gone.Load() {
		return nil // it was used and freed meanwhile, and its file perhaps closed
	}
	if err != nil {
		return w.fail(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.head.capacity = capacity
	if slices.Contains(w.stock.ready, s) {
		w.stock.held += capacity - old
	}
	w.review()
	return nil
}

// restock fills the stock up to its target, and removes what is much too much. A
// full disk is not an error; it is what the status says.
func (w *WAL) restock() error {
	w.look()
	w.mu.Lock()
	s := &w.stock
	s.skip = max(0, s.skip-1)
	if s.tooLarge > 0 && s.spendable() >= w.segmentFor(s.tooLarge) {
		s.tooLarge = 0
	}
	w.mu.Unlock()
	var refused uint64 // the need for which there was no place in this pass
	for {
		more, err := w.restockOne(&refused)
		if err != nil {
			return err
		}
		if !more {
			return w.shrink()
		}
	}
}

// restockOne makes the one thing that is missed most, and reports whether there
// is more to do. In order: a place for a group that was refused; a segment to go on
// with; the reserve; a second segment.
func (w *WAL) restockOne(refused *uint64) (more bool, err error) {
	w.making <- struct{}{}
	defer func() { <-w.making }()

	w.mu.Lock()
	s := &w.stock
	err = w.usable()
	need, ready, missing := max(s.lack, s.owed), len(s.ready), s.target-min(s.target, s.spared)
	w.mu.Unlock()
	if err != nil {
		return false, err
	}
	if need > *refused {
		ok, err := w.serve(need)
		if !ok {
			*refused = need
		}
		return true, err
	}
	if ready > 0 && missing > 0 {
		if made, err := w.reserve(missing); made || err != nil {
			return true, err
		}
	}
	if ready < readyTarget {
		if made, err := w.readyOne(); made || err != nil {
			return true, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if missing == 0 && ready >= readyTarget {
		s.spent = false
	}
	w.review()
	return false, nil
}

// serve makes a place for a group that was refused, and reports whether it could.
// The making token is held.
func (w *WAL) serve(need uint64) (bool, error) {
	w.mu.Lock()
	s := &w.stock
	b := ordinary
	if s.owed > 0 {
		b = emergency
	}
	w.mu.Unlock()
	ok, err := w.provide(need, b)
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.lack <= need {
		if s.lack > 0 && !ok && (s.tooLarge == 0 || s.lack < s.tooLarge) {
			s.tooLarge = s.lack // it was told to wait, and is told no when it comes back
		}
		s.lack = 0
	}
	if ok && s.owed <= need {
		s.owed = 0
	}
	w.review()
	return ok, err
}

// reserve makes a file for some of the missing bytes of the reserve, and reports
// whether it could. It is not written: it will be used in emergencies only. The
// making token is held.
func (w *WAL) reserve(missing uint64) (bool, error) {
	const unit = 64 << 10
	w.mu.Lock()
	size := (missing + headerSize + batchHeader + alignment + unit - 1) &^ (unit - 1)
	size = min(w.stock.limit, max(w.least(), size))
	w.mu.Unlock()
	p, err := w.allocate(size, w.least(), ordinary)
	if p == nil || err != nil {
		return false, err
	}
	w.returnSpare(p)
	return true, nil
}

// readyOne adds one to the ready segments, and reports whether it could: a
// recycled file, else a new one, else, on a full disk, one of the reserve. (That
// takes nothing from upkeep: who may use it is a matter of how much there is.) The
// making token is held.
func (w *WAL) readyOne() (bool, error) {
	w.mu.Lock()
	size := w.capacity()
	p := w.takeRecycled(size)
	w.mu.Unlock()
	if p == nil {
		var err error
		if p, err = w.allocate(size, w.least(), ordinary); err != nil {
			return false, err
		}
		if p != nil {
			if err := w.fill(p); err != nil {
				return false, w.lost(p, err)
			}
		}
	}
	if p == nil {
		w.mu.Lock()
		p = w.takeSpare(0)
		w.mu.Unlock()
	}
	if p == nil {
		return false, nil
	}
	return w.format(p)
}

// fill writes zeros over an allocated file: a commit over written blocks costs no
// metadata. It stops early, which does no harm, when somebody waits for the file,
// or soon will: when in the time of a few more steps the ready segments would be
// used up.
func (w *WAL) fill(p *spare) error {
	const steps = 8 // a step takes about as long as to format the file
	w.mu.Lock()
	appended := w.log.appended
	w.mu.Unlock()
	for off := uint64(0); off < p.size; off += zeroStep {
		w.mu.Lock()
		s := &w.stock
		kept := max(s.target, s.spared) + p.room(w.block) // what is not ready, or not for senders
		have := w.available()
		used := w.log.appended - appended
		hurry := s.lack > 0 || s.waiting > 0 || w.ending.Load() || used > 0 && have < kept+steps*used
		appended += used
		w.mu.Unlock()
		if hurry {
			return nil
		}
		if err := zero(p.file, off, min(p.size, off+zeroStep)); err != nil {
			return err
		}
	}
	return nil
}

// format makes p the last of the ready segments, and reports whether there was
// space for that. The making token is held.
func (w *WAL) format(p *spare) (bool, error) {
	w.mu.Lock()
	number := w.log.active.number + uint64(len(w.stock.ready)) + 1
	w.mu.Unlock()

	s, err := p.format(w.fs, number, w.block)
	if passes(err) && p.name != segmentName(number) {
		w.returnSpare(p)
		return false, nil
	}
	if err != nil { // also if it was renamed and nobody knows whether that lasts
		return false, w.fail(errors.Join(err, p.file.Close()))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stock.ready = append(w.stock.ready, s)
	w.stock.newest = max(w.stock.newest, s.head.capacity)
	w.review()
	return true, nil
}

// lost closes a file of which nobody knows any more what is in it. Its error is
// the end, unless there was merely no space.
func (w *WAL) lost(p *spare, err error) error {
	w.mu.Lock()
	w.stock.held -= p.room(w.block)
	w.stock.spent = true
	w.review()
	w.mu.Unlock()
	if !passes(err) {
		return w.fail(errors.Join(err, p.file.Close()))
	}
	if err := w.discard([]*spare{p}); err != nil {
		return w.fail(err)
	}
	return nil
}

// passes reports whether err is a lack of space or of file descriptors. A process
// that has no descriptor left is in the same state as one whose disk is full: it
// cannot make a file for now.
func passes(err error) bool {
	return errors.Is(err, vfs.ErrNoSpace) || errors.Is(err, vfs.ErrTooManyFiles)
}

// budget says how much of the free space may be used.
type budget uint8

const (
	ordinary  budget = iota // all but the margin
	emergency               // all of it
)

// within returns how much of the disk a budget allows; mu is held.
func (s *stock) within(b budget) uint64 {
	if b == emergency {
		return s.free
	}
	return s.spendable()
}

// allocate makes a file of size bytes, or of fewer if the disk has no more, but
// at least of least; nil says that there is no space. The disk is asked first: it
// costs others dear to find every last byte taken, even if only for a moment.
func (w *WAL) allocate(size, least uint64, b budget) (*spare, error) {
	w.look()
	w.mu.Lock()
	s := &w.stock
	free := s.within(b)
	if b == ordinary && s.skip > 0 && free <= s.refused {
		free = 0
	}
	w.mu.Unlock()

	size = min(size, free&^511)
	tried := false
	for size >= least {
		p, err := allocateSpare(w.fs, reserveName(w.spareID.Add(1)), size)
		if err == nil {
			w.mu.Lock()
			s.held += p.room(w.block)
			s.spent, s.tooLarge, s.backoff, s.skip = false, 0, 0, 0
			w.review()
			w.mu.Unlock()
			return p, nil
		}
		if !passes(err) {
			return nil, w.fail(err)
		}
		if errors.Is(err, vfs.ErrTooManyFiles) {
			break // whatever its size, and nothing was written: try again soon
		}
		tried = true
		if size == least {
			break
		}
		size = max(least, size/2&^511)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.spent = true
	if tried && b == ordinary { // it has less than it says; a quota, perhaps
		s.backoff = min(2*s.backoff+1, maxSkip)
		s.skip, s.refused = s.backoff+1, free
	}
	w.review()
	return nil, nil
}

// merge makes one file of size bytes in place of several spares, if that can be;
// nil says that it cannot. The making token is held.
func (w *WAL) merge(size uint64) (*spare, error) {
	w.mu.Lock()
	s := &w.stock
	sum := s.free
	var given []*spare
	for sum < size {
		p := w.takeSmallest()
		if p == nil {
			break
		}
		given = append(given, p)
		sum += p.size
	}
	w.mu.Unlock()
	if sum < size || len(given) == 0 {
		for _, p := range given {
			w.returnSpare(p)
		}
		return nil, nil
	}
	if err := w.give(given); err != nil {
		return nil, err
	}
	return w.allocate(size, size, emergency)
}

// give removes files that are in the caller's hands.
func (w *WAL) give(spares []*spare) error {
	w.mu.Lock()
	for _, p := range spares {
		w.stock.held -= p.room(w.block)
	}
	w.review()
	w.mu.Unlock()
	if err := w.discard(spares); err != nil {
		return w.fail(err)
	}
	return nil
}

// giveUpSpare removes a spare for the sake of its space, which is needed more
// elsewhere, and reports whether there was one.
func (w *WAL) giveUpSpare() bool {
	w.mu.Lock()
	p := w.takeSmallest()
	w.mu.Unlock()
	return p != nil && w.give([]*spare{p}) == nil
}

// shrink removes spares that are far more than the target asks for.
func (w *WAL) shrink() error {
	w.mu.Lock()
	var given []*spare
	for w.stock.excess() {
		p := w.takeSurplus(w.stock.target)
		if p == nil {
			break
		}
		given = append(given, p)
	}
	w.mu.Unlock()
	if len(given) == 0 {
		return nil
	}
	return w.give(given)
}

// excess reports whether there are spares to be removed at once; mu is held.
func (s *stock) excess() bool {
	return s.spared > 2*s.target+(spareTarget+1)*max(s.limit, s.newest)
}

// bloated reports whether the stock is more than an idle store should have; mu is
// held.
func (w *WAL) bloated() bool {
	var ready uint64
	for _, s := range w.stock.ready {
		ready += s.head.capacity
	}
	return ready > idleStock || w.surplus(w.stock.target) >= 0
}

// trim makes the stock of a store that nobody uses as small as that of a new one.
func (w *WAL) trim() error {
	w.making <- struct{}{}
	err := w.trimReady()
	<-w.making
	if err != nil {
		return err
	}
	for {
		w.mu.Lock()
		p := w.takeSurplus(w.stock.target)
		w.mu.Unlock()
		if p == nil {
			return nil
		}
		if err := w.give([]*spare{p}); err != nil {
			return err
		}
	}
}

// trimReady makes spares of ready segments, the last one first so that there is no
// gap behind a crash, until few enough are left. None of them has to be there: the
// active segment is sealed only when the one behind it is taken from the ready ones.
// The making token is held.
func (w *WAL) trimReady() error {
	for {
		w.mu.Lock()
		var sum uint64
		for _, s := range w.stock.ready {
			sum += s.head.capacity
		}
		if sum <= idleStock {
			w.mu.Unlock()
			return nil
		}
		n := len(w.stock.ready) - 1
		last := w.stock.ready[n]
		w.stock.ready = w.stock.ready[:n]
		w.stock.newest, w.stock.largest = firstCapacity, [2]uint64{} // growth starts again
		w.mu.Unlock()

		name := spareName(w.spareID.Add(1))
		p := &spare{name, named(last.file, name), last.head.capacity}
		err := w.fs.Rename(last.name, p.name)
		if passes(err) { // the directory has no space for the name
			p.name = last.name
			if err := w.give([]*spare{p}); err != nil {
				return err
			}
			continue
		}
		if err == nil {
			err = w.fs.SyncDir(".")
		}
		if err != nil {
			return w.fail(err)
		}
		w.returnSpare(p)
	}
}

// putSpare keeps a file that was freed for later.
func (w *WAL) putSpare(p *spare) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.stock
	s.held += p.room(w.block)
	s.spared += p.room(w.block)
	s.spares = append(s.spares, p)
	s.tooLarge, s.skip = 0, 0
	w.review()
}

// returnSpare puts back a spare that was taken, or made.
func (w *WAL) returnSpare(p *spare) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stock.spared += p.room(w.block)
	w.stock.spares = append(w.stock.spares, p)
}

// takeSpare returns the smallest spare of at least size bytes, or the largest if
// size is zero; nil if there is none. mu is held.
func (w *WAL) takeSpare(size uint64) *spare {
	best := -1
	for i, p := range w.stock.spares {
		switch {
		case p.size < size:
		case best < 0, (p.size < w.stock.spares[best].size) == (size > 0):
			best = i
		}
	}
	return w.take(best)
}

// takeSmallest returns the spare that is missed least, or nil; mu is held.
func (w *WAL) takeSmallest() *spare { return w.takeSpare(1) }

// takeRecycled returns a file of at least size bytes that is written all over, or
// nil; mu is held. One that is much larger is left alone: an idle store would give
// it back, and then take it again.
func (w *WAL) takeRecycled(size uint64) *spare {
	for i, p := range w.stock.spares {
		if p.recycled() && p.size >= size && p.size <= 2*size {
			return w.take(i)
		}
	}
	return nil
}

// takeSurplus returns a spare without which there still is the target, or nil; mu
// is held.
func (w *WAL) takeSurplus(target uint64) *spare { return w.take(w.surplus(target)) }

// surplus returns the index of the largest spare that is not needed for target
// bytes; -1 if there is none. mu is held.
func (w *WAL) surplus(target uint64) int {
	best := -1
	for i, p := range w.stock.spares {
		if w.stock.spared-p.room(w.block) >= target && (best < 0 || p.size > w.stock.spares[best].size) {
			best = i
		}
	}
	return best
}

// take takes the spare of that index into the caller's hands; -1 is none. mu is
// held.
func (w *WAL) take(i int) *spare {
	if i < 0 {
		return nil
	}
	s := &w.stock
	p := s.spares[i]
	s.spares[i] = s.spares[len(s.spares)-1]
	s.spares[len(s.spares)-1] = nil
	s.spares = s.spares[:len(s.spares)-1]
	s.spared -= p.room(w.block)
	return p
}

// discard removes files that are of no use any more. That they could not be
// removed is an error, except that they were not there.
func (w *WAL) discard(spares []*spare) error {
	if len(spares) == 0 {
		return nil
	}
	var errs []error
	for _, p := range spares {
		if err := w.fs.Remove(p.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		if p.file != nil {
			errs = append(errs, p.file.Close())
		}
	}
	return errors.Join(append(errs, w.fs.SyncDir("."))...)
}
