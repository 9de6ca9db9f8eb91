// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/triagemq/triagemq/client"
)

// A pool of several sources serves those that exist. The broker refuses a receiver of which
// one source is absent, so receivers are opened without those, and opened again when one of
// them appears. Only what the broker refuses is known to be absent, so a pool whose sources
// all exist pays nothing.

// absentCheck is how often absent sources are looked for.
const absentCheck = 3 * time.Second

// errAbsent means that no source of a receiver exists.
var errAbsent = fmt.Errorf("worker: %w", client.ErrNotFound)

// present returns which sources of a key exist, as far as is known.
func (s *supply) present(k receiverKey) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []int
	for i := k.first; i < k.last; i++ {
		if !s.absent[i] {
			out = append(out, i)
		}
	}
	return out
}

// allAbsent reports whether the pool has nothing to serve.
func (s *supply) allAbsent() bool { return len(s.present(receiverKey{last: len(s.sources)})) == 0 }

// setAbsent notes whether a source exists, and logs what changes.
func (s *supply) setAbsent(source int, absent bool) {
	s.mu.Lock()
	changed := s.absent[source] != absent
	s.absent[source] = absent
	if absent {
		s.looked = time.Now()
	}
	s.mu.Unlock()
	switch name := s.sources[source].Entity; {
	case !changed || len(s.sources) == 1:
	case absent:
		s.log.Warn("a source does not exist; the pool serves the others until it does", "source", name)
	default:
		s.log.Info("a source exists now", "source", name)
	}
}

// openPresent opens a receiver of those sources of a key that exist.
func (s *supply) openPresent(ctx context.Context, k receiverKey) (receiver, []int, error) {
	for {
		of := s.present(k)
		if len(of) == 0 {
			return nil, nil, fmt.Errorf("%w: %s", errAbsent, s.names())
		}
		r, err := s.open(ctx, s.sources[of[0]].Entity, s.options(k, of))
		if err == nil {
			return r, of, nil
		}
		if !errors.Is(err, client.ErrNotFound) || len(s.sources) == 1 {
			return nil, nil, err
		}
		if found, e := s.findAbsent(ctx, of); e != nil || !found {
			return nil, nil, errors.Join(err, e)
		}
	}
}

// findAbsent finds out which of these sources do not exist, of which one does not. It
// returns false if all of them do by now.
func (s *supply) findAbsent(ctx context.Context, among []int) (found bool, err error) {
	for _, i := range among {
		if len(among) > 1 {
			err = s.probe(ctx, i)
		}
		switch {
		case len(among) == 1 || errors.Is(err, client.ErrNotFound):
			s.setAbsent(i, true)
			found = true
		case err != nil:
			return found, err
		}
	}
	return found, nil
}

// probe returns whether a source can be opened.
func (s *supply) probe(ctx context.Context, source int) error {
	k := receiverKey{peekChannel, source, source + 1, -1, false}
	r, err := s.open(ctx, s.sources[source].Entity, s.options(k, []int{source}))
	if err == nil {
		s.close(r)
	}
	return err
}

// lookForAbsent looks whether absent sources exist by now, if it is time.
func (s *supply) lookForAbsent(ctx context.Context) {
	s.mu.Lock()
	var absent []int
	if now := time.Now(); len(s.sources) > 1 && now.Sub(s.looked) >= absentCheck {
		for i, is := range s.absent {
			if is {
				s.looked = now
				absent = append(absent, i)
			}
		}
	}
	s.mu.Unlock()
	for _, i := range absent {
		if err := s.probe(ctx, i); err == nil {
			s.setAbsent(i, false)
		}
	}
}

// untilLook returns a context that ends when absent sources of a key are to be looked for.
func (s *supply) untilLook(ctx context.Context, k receiverKey) (context.Context, context.CancelFunc) {
	if len(s.present(k)) == k.last-k.first {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, absentCheck)
}
