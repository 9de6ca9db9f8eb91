// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
)

func TestWhatIsDoneWithAPartitionInTheEnd(t *testing.T) {
	now := time.Unix(1000, 0)
	drain := func(l *lifecycle) { l.drain(now, 0) }
	lose := func(l *lifecycle) { l.lose() }
	stolen := func(l *lifecycle) { l.giveBack = true; l.lose() }
	overdue := func(l *lifecycle) { l.timedOut(l.call()) }
	for name, c := range map[string]struct {
		steps []func(*lifecycle)
		want  handOver
	}{
		"drained":           {[]func(*lifecycle){drain}, handOverSave},
		"lost":              {[]func(*lifecycle){lose}, handOverNothing},
		"drained and lost":  {[]func(*lifecycle){drain, lose}, handOverNothing},
		"stolen":            {[]func(*lifecycle){stolen}, handOverBack},
		"drained, stolen":   {[]func(*lifecycle){drain, stolen}, handOverBack},
		"overdue":           {[]func(*lifecycle){overdue}, handOverElsewhere},
		"drained, overdue":  {[]func(*lifecycle){drain, overdue}, handOverElsewhere},
		"overdue, released": {[]func(*lifecycle){overdue, lose}, handOverElsewhere},
		"lost, overdue":     {[]func(*lifecycle){lose, overdue}, handOverNothing},
	} {
		var l lifecycle
		for _, step := range c.steps {
			step(&l)
		}
		if got := l.handOver(); got != c.want || !l.ending() {
			t.Errorf("%s: %d, ending %t; want %d", name, got, l.ending(), c.want)
		}
	}
}

// Only an earlier end of draining changes anything, and a stuck handler is told of once.
func TestLifecycleTellsOnce(t *testing.T) {
	var l lifecycle
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		by             time.Duration
		first, changed bool
	}{{3, true, true}, {4, false, false}, {2, false, true}} {
		if first, changed := l.drain(now.Add(c.by), 0); first != c.first || changed != c.changed {
			t.Errorf("drain by %d: %t, %t; want %t, %t", c.by, first, changed, c.first, c.changed)
		}
	}
	old := l.call()
	n := l.call()
	if l.timedOut(old) || !l.timedOut(n) || l.timedOut(n) || l.endOfContext() {
		t.Error("a call that is over is late, or one is told twice")
	}
}

func TestProgressCountsWhatACheckpointCovers(t *testing.T) {
	p := newProgress(9)
	if after, is := p.gap(12); !is || after != 9 {
		t.Errorf("gap %t after %d", is, after)
	}
	p.skipTo(12)
	var events []*client.Received
	for n := client.SeqNo(12); n < 20; n++ {
		events = append(events, &client.Received{SeqNo: n})
	}
	p.taken(events)
	p.begin(events)
	for _, n := range []client.SeqNo{13, 14, 15, 16, 17} {
		p.done(n)
	}
	if at, due := p.due(EveryN(3)); due {
		t.Errorf("a checkpoint of %d is due behind an event that is not done", at)
	}
	p.done(12)
	if at, due := p.due(EveryN(3)); !due || at != 17 {
		t.Errorf("checkpoint %d due: %t", at, due)
	}
	if _, due := p.due(EveryN(3)); due {
		t.Error("it is due again")
	}
	if _, is := p.gap(20); is || p.left != 2 {
		t.Errorf("a gap where there is none, or %d are left", p.left)
	}
	for after, gap := range map[client.SeqNo]bool{none: false, oldest: false, beginning: true, 3: true} {
		p := newProgress(after)
		if _, is := p.gap(5); is != gap {
			t.Errorf("after %d: event 5 is behind a gap: %t", after, is)
		}
	}
}
