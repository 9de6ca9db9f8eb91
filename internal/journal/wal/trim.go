// SPDX-License-Identifier: Apache-2.0

package wal

import "github.com/triagemq/triagemq/internal/journal/wal/store"

// shrink removes spares that are far more than the target asks for.
func (w *WAL) shrink() error {
	w.mu.Lock()
	var given []*store.Spare
	for w.pool.excess() {
		p := w.takeSurplus(w.pool.target)
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

// excess reports whether there are spares to be removed at once; mu is held. What was made for
// a group that was refused is still there when it comes again.
func (s *segmentPool) excess() bool {
	return s.spared > 2*(s.target+s.asked)+(spareTarget+1)*max(s.limit, s.newest)
}

// bloated reports whether the pool, or the buffers, are more than an idle store should
// have; mu is held.
func (w *WAL) bloated() bool {
	var ready uint64
	for _, s := range w.pool.ready {
		ready += s.Head.Capacity
	}
	return ready > w.idleReady() || w.surplus(w.pool.target) >= 0 || len(w.log.unused) > 1
}

// trim makes the pool of an idle store as small as that of a new one.
func (w *WAL) trim() error {
	w.mu.Lock()
	if n := len(w.log.unused); n > 1 {
		clear(w.log.unused[1:])
		w.log.unused = w.log.unused[:1]
	}
	w.mu.Unlock()
	w.segmentToken <- struct{}{}
	err := w.trimReady()
	<-w.segmentToken
	if err != nil {
		return err
	}
	for {
		w.mu.Lock()
		w.pool.asked = 0
		p := w.takeSurplus(w.pool.target)
		w.mu.Unlock()
		if p == nil {
			return nil
		}
		if err := w.give([]*store.Spare{p}); err != nil {
			return err
		}
	}
}

// trimReady makes spares of ready segments, the last one first so that there is no
// gap behind a crash, until few enough are left. None of them has to be there: the
// active segment is sealed only when the one behind it is taken from the ready ones.
// The segment token is held.
func (w *WAL) trimReady() error {
	for {
		w.mu.Lock()
		var sum uint64
		for _, s := range w.pool.ready {
			sum += s.Head.Capacity
		}
		if sum <= w.idleReady() {
			w.mu.Unlock()
			return nil
		}
		n := len(w.pool.ready) - 1
		last := w.pool.ready[n]
		w.pool.ready = w.pool.ready[:n]
		w.pool.newest, w.pool.largest = w.first(), [2]uint64{} // growth starts again
		w.mu.Unlock()

		name := store.SpareName(w.spareID.Add(1))
		p := &store.Spare{Name: name, File: store.Named(last.File, name), Size: last.Head.Capacity}
		err := w.fs.Rename(last.Name, p.Name)
		if passes(err) { // the directory has no space for the name
			p.Name = last.Name
			if err := w.give([]*store.Spare{p}); err != nil {
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
