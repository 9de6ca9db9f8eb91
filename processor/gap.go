// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/client"
)

// GapPolicy says what a partition does when events are gone that the group has not handled:
// they were older than the retention of the hub, or they are damaged.
type GapPolicy uint8

// The policies. With each of them OnError gets a [GapError].
const (
	// GoOn handles the next event that there is.
	GoOn GapPolicy = iota
	// StandStill handles no event behind the gap, in any instance with this policy, until the
	// partition is rewound: [Processor.Rewind], or triagemq group rewind.
	StandStill
)

// ErrGap means that events are gone that were not handled; see [GapError].
var ErrGap = errors.New("processor: events are gone")

// GapError tells OnError that events of a partition are gone that were not handled. It is
// told once for each grant of the partition that meets the gap.
type GapError struct {
	Hub, Group, Partition string
	// After is the event before the gap: the last one that was handled, or that of the
	// checkpoint; -1 if the gap begins with the first event of the partition.
	After client.SeqNo
	// Next is the first event that there is behind the gap.
	Next client.SeqNo
	// StandsStill says that the partition waits; see [StandStill].
	StandsStill bool
}

// Events returns how many events are gone.
func (e *GapError) Events() int64 { return int64(e.Next - e.After - 1) }

func (e *GapError) Error() string {
	does := "the processor goes on behind them"
	if e.StandsStill {
		does = "the partition stands still until it is rewound"
	}
	return fmt.Sprintf("%v: partition %s of %s/%s, %d events from %d to %d, which were not handled; %s",
		ErrGap, e.Partition, e.Hub, e.Group, e.Events(), e.After+1, e.Next-1, does)
}

// Unwrap returns ErrGap.
func (e *GapError) Unwrap() error { return ErrGap }

// meetGap tells of a gap. It reports whether the partition goes on behind it.
func (p *pump) meetGap(after, next client.SeqNo) bool {
	s := &p.run.settings
	stand := p.run.processor.AtGap == StandStill
	err := &GapError{Hub: s.hub, Group: s.group, Partition: p.grant.partition, After: after, Next: next, StandsStill: stand}
	p.mu.Lock()
	told := p.standing
	if p.standing = stand; !stand {
		p.progress.skipTo(next)
		p.skipped += uint64(err.Events())
	}
	p.mu.Unlock()
	if !stand {
		p.run.totals.skipped.Add(uint64(err.Events()))
	}
	if !told {
		p.run.tell(err)
	}
	return !stand
}
