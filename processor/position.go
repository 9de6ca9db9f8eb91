// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"time"

	"github.com/triagemq/triagemq/client"
)

// Position is a place in a partition. The zero value is [Earliest].
type Position struct {
	kind  positionKind
	after client.SeqNo
	since time.Time
}

type positionKind uint8

const (
	earliest positionKind = iota
	latest
	bySequence
	byTime
)

// Earliest begins with the oldest event that the hub has.
func Earliest() Position { return Position{} }

// Latest begins with the first event that is published from now on. That place is saved as
// the first checkpoint, whatever the policy, so that the next owner skips nothing.
func Latest() Position { return Position{kind: latest} }

// FromSequence begins with the event of a number, or the first after it that there is.
func FromSequence(n client.SeqNo) Position { return Position{kind: bySequence, after: n - 1} }

// FromTime begins with the first event that was enqueued at t or later.
func FromTime(t time.Time) Position { return Position{kind: byTime, since: t} }

// behind begins after the event of a number.
func behind(n client.SeqNo) Position { return Position{kind: bySequence, after: n} }

// options returns the settings of a reader that begins there.
func (p Position) options() client.EventReaderOptions {
	var o client.EventReaderOptions
	switch p.kind {
	case latest:
		o.Latest = true
	case bySequence:
		o.After = &p.after
	case byTime:
		o.Since = p.since
	}
	return o
}
