// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"time"

	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/streamserver"
)

// batch is one that was sent.
type batch struct {
	raw   string // different for each
	count int
	first stream.SeqNo // once it is known; -1 before
	asked time.Time    // when it was sent
	known bool         // it was acknowledged or seen
}

// log is what the outside knows of a partition.
type log struct {
	sent   map[string]*batch       // by their bytes
	known  map[stream.SeqNo]*batch // by their first event
	end    stream.SeqNo            // behind the last event that is known
	at     map[stream.SeqNo]time.Time
	oldest stream.SeqNo // that a check has found; it never goes back
}

func newLog() *log {
	return &log{sent: map[string]*batch{}, known: map[stream.SeqNo]*batch{}, at: map[stream.SeqNo]time.Time{}}
}

// learn takes over that a batch is at a place. It returns what is wrong with that, if
// anything.
func (l *log) learn(b *batch, first stream.SeqNo) string {
	if b.known && b.first != first {
		return "it is there twice"
	}
	if other := l.known[first]; other != nil && other != b {
		return "another one is there"
	}
	b.known, b.first = true, first
	l.known[first] = b
	l.end = max(l.end, first+stream.SeqNo(b.count))
	return ""
}

// retention is what may have been dropped: it remembers all settings since the beginning.
type retention struct {
	set     streamserver.Settings
	pending []streamserver.Settings // that the hub has not answered, and those before them
	// before is the time up to which events may be gone: that of some moment, less the
	// retention then.
	before time.Time
	// sized is when a limit of bytes was last in force: what was sent before may be gone.
	sized time.Time
	// longest is the longest retention there was; 0 if one was without end.
	longest time.Duration
}

func (r *retention) configure(now time.Time, set streamserver.Settings) {
	if r.set.RetainFor == 0 && r.set.Partitions > 0 || set.RetainFor == 0 {
		r.longest = 0
	} else if r.longest > 0 || r.set.Partitions == 0 {
		r.longest = max(r.longest, set.RetainFor)
	}
	if r.set.Partitions > 0 { // the hub may be slow to apply it
		r.pending = append(r.pending, r.set)
	}
	r.set = set
	r.pass(now)
}

// configured says that the hub has applied one.
func (r *retention) configured(now time.Time) {
	r.pass(now)
	r.pending = r.pending[1:]
}

// pass takes over that it is now.
func (r *retention) pass(now time.Time) {
	for _, set := range append(r.pending, r.set) {
		if t := now.Add(-set.RetainFor); set.RetainFor > 0 && t.After(r.before) {
			r.before = t
		}
		if set.RetainBytes > 0 {
			r.sized = now
		}
	}
}

// mayDrop reports whether a batch that was sent at some time may be gone.
func (r *retention) mayDrop(asked time.Time) bool {
	return !asked.After(r.before) || !asked.After(r.sized)
}
