// SPDX-License-Identifier: Apache-2.0

package bodies

import (
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// Alone reports whether a message has nothing beside its body: no reason of a dead letter and
// no saved state.
func Alone(d *queue.Delivery) bool { return d.Reason == (queue.Ref{}) && d.Saved == (queue.Ref{}) }

// Moved takes over where now has the body of d and what is beside it, and reports whether
// that is another place.
func Moved(d, now *queue.Delivery) bool {
	if now.Body == d.Body && now.Reason == d.Reason && now.Saved == d.Saved {
		return false
	}
	d.Body, d.Reason, d.Saved = now.Body, now.Reason, now.Saved
	return true
}

// AppendReads adds what has to be read of a message to reads: its body, and what is beside
// it, its reason and its saved state.
func AppendReads(reads []journal.Read, d *queue.Delivery) []journal.Read {
	reads = append(reads, engine.ReadOf(d.Body))
	for _, beside := range []queue.Ref{d.Reason, d.Saved} {
		if beside != (queue.Ref{}) {
			reads = append(reads, engine.ReadOf(beside))
		}
	}
	return reads
}

// Parse returns the message in what AppendReads had read. If the body of a dead letter
// cannot be read it returns a placeholder, and damaged is true. ErrFreed may mean that
// the body was moved.
func Parse(reads []journal.Read, deadLetter bool) (m *message.Message, damaged bool, err error) {
	m, err = ParseOne(&reads[0])
	var beside *message.Message
	for i := range reads[1:] {
		b, besideErr := ParseOne(&reads[1+i])
		if errors.Is(besideErr, journal.ErrFreed) || errors.Is(besideErr, journal.ErrClosed) {
			return nil, false, besideErr
		}
		switch {
		case b == nil && !deadLetter: // the saved state: work must not begin again as if there were none
			return nil, false, besideErr
		case b == nil:
			continue
		}
		if beside = b; err == nil {
			m, err = merged(m, b)
		}
	}
	switch {
	case err == nil, errors.Is(err, journal.ErrFreed), errors.Is(err, journal.ErrClosed), !deadLetter:
		return m, false, err
	}
	return Placeholder(beside), true, nil
}

// ParseOne returns the message in a body that was read.
func ParseOne(r *journal.Read) (*message.Message, error) {
	raw, err := engine.Body(r)
	if err != nil {
		return nil, err
	}
	m, err := message.ParseStored(raw)
	if err != nil {
		return nil, fmt.Errorf("parse body at %d: %w", r.At, err)
	}
	return m, nil
}
