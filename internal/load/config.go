// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Mode says which way the load goes.
type Mode string

// The modes.
const (
	Send    Mode = "send"
	Receive Mode = "receive"
	InOut   Mode = "inout"
)

// Config is what a run does. Zero values mean the defaults.
type Config struct {
	Target Target
	Queue  string // default bench
	Mode   Mode   // default inout
	// Hub makes the run one on an event hub of that name, which has so many Partitions.
	Hub        string
	Partitions int // default 16
	// Behind is how many connections read the hub from its oldest event on meanwhile. The
	// others then begin behind the backlog, and are measured.
	Behind int
	// Single has every event of a hub come in a delivery of its own, as the SDKs read.
	// Else they come in batches, as our client reads.
	Single bool

	Senders   int // connections; default 4
	Receivers int // connections; default 4
	Size      int // bytes of a body; default 256
	Levels    int // priority levels, used round robin; default 10
	Window    int // deliveries of a sender that may wait for their answer; default 500
	Batch     int // messages in a delivery; more than one makes batches
	Credit    int // link credit of a receiver; default 1000
	Rate      int // messages that all senders together send in a second; 0 is as many as they can

	// Duration or Count ends the load; default 10s.
	Duration time.Duration
	Count    uint64

	// Backlog is how many messages are waiting before anything is measured.
	Backlog uint64
	// Urgent makes the run one of urgent messages past the backlog: this many are
	// sent, one at a time, while each of the Receivers connections has one message
	// in work.
	Urgent int
	// Pause is the time between the receipt of an urgent message and the next one.
	Pause time.Duration

	// Progress is called once a second; nil is fine.
	Progress func(Progress)
}

// Progress is the progress of a run.
type Progress struct {
	Phase   string // fill, load, urgent or drain
	Elapsed time.Duration
	In, Out uint64  // in the phase so far
	InRate  float64 // per second, since the last report
	OutRate float64
}

// WithDefaults returns c with everything set that a run needs.
func (c Config) WithDefaults() Config {
	c.Queue = cmp.Or(c.Queue, "bench")
	c.Mode = cmp.Or(c.Mode, InOut)
	c.Senders = cmp.Or(c.Senders, 4)
	c.Receivers = cmp.Or(c.Receivers, 4)
	c.Size = cmp.Or(c.Size, 256)
	c.Levels = cmp.Or(c.Levels, 10)
	if c.Hub != "" {
		c.Partitions = cmp.Or(c.Partitions, 16)
		c.Batch = cmp.Or(c.Batch, hubBatch)
		c.Window = cmp.Or(c.Window, hubWindow)
		if c.Single {
			c.Credit = cmp.Or(c.Credit, hubCredit)
		}
		c.Credit = cmp.Or(c.Credit, batchCredit)
		c.Receivers = min(c.Receivers, c.Partitions)
	}
	c.Window = cmp.Or(c.Window, 500)
	c.Credit = cmp.Or(c.Credit, 1000)
	if c.Duration == 0 && c.Count == 0 {
		c.Duration = 10 * time.Second
	}
	return c
}

// maxBehind leaves one of the five readers that a partition can have without an epoch.
const maxBehind = 4

// Validate reports every fault at once.
func (c Config) Validate() error {
	var errs []error
	wrong := func(when bool, format string, args ...any) {
		if when {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(c.Mode != Send && c.Mode != Receive && c.Mode != InOut, "mode: %q is none of send, receive, inout", c.Mode)
	wrong(c.Size < minSize, "size: %d is below %d", c.Size, minSize)
	wrong(c.Levels < 1 || c.Levels > 256, "levels: %d is outside 1..256", c.Levels)
	wrong(c.Senders < 1 || c.Receivers < 1, "senders and receivers: at least one of each")
	wrong(c.Window < 1 || c.Credit < 1, "window and credit: at least 1")
	wrong(c.Hub != "" && c.Urgent > 0, "urgent: an event hub has no priorities")
	wrong(c.Hub == "" && c.Single, "single: messages of a queue are always single")
	wrong(c.Hub == "" && c.Behind > 0, "behind: a queue has no old messages to read")
	wrong(c.Behind < 0 || c.Behind > maxBehind, "behind: %d is outside 0..%d", c.Behind, maxBehind)
	wrong(c.Partitions < 0, "partitions: %d is negative", c.Partitions)
	wrong(c.Rate < 0, "rate: %d is negative", c.Rate)
	wrong(c.Batch < 0 || c.Urgent < 0 || c.Duration < 0 || c.Pause < 0, "batch, urgent, duration and pause cannot be negative")
	return errors.Join(errs...)
}
