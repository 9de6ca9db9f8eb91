// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/triagemq/triagemq/internal/limits"
)

// Errors of reports and orders.
var (
	// ErrInvalid means that a report or an order makes no sense.
	ErrInvalid = errors.New("pools: invalid")
	// ErrNotFound means that no pool has that name.
	ErrNotFound = errors.New("pools: no such pool")
	// ErrTooMany means that the source, or the broker, has the most pools that are allowed.
	ErrTooMany = errors.New("pools: too many")
)

// Orders are what a pool was told to do.
type Orders struct {
	Paused bool
	Slots  int // of each instance; zero is its own setting
	// Revision grows with each order. Zero means that there was none.
	Revision int64
	// Seal proves that the broker gave these orders to this pool; see seal.
	Seal string
}

// Report is what an instance tells about itself.
type Report struct {
	Name     string
	Instance string   // an ID of its own choice
	Sources  []string // at least one: it is announced at the first
	// Owner is the queue or topic that the first source belongs to; empty is that source. All
	// pools of one have a share of what is kept.
	Owner string
	// Beside are other queues and subscriptions: a pool in the background leaves their
	// pools the machine, as those at its sources.
	Beside  []string
	Host    string
	Process int

	Slots     int
	Busy      int    // handlers that run
	Suspended int    // handlers that wait in place
	Retrying  int    // messages that are kept for a retry
	Paused    bool   // also by the program itself
	Idle      string // why it does nothing; "" if it works
	// Background says that it works only while no other pool that counts is fully busy.
	Background bool
	Counts     Counts // since it started
	Orders     Orders // that it obeys
	Leaving    bool   // it stops: this is its last report
}

// Counts are totals of what became of messages.
type Counts struct {
	Completed    uint64 `json:"completed"`
	Failed       uint64 `json:"failed"`
	DeadLettered uint64 `json:"deadLettered"`
	Preempted    uint64 `json:"preempted"`
}

// add adds what has happened between two reports of an instance.
func (c *Counts) add(from, to Counts) {
	c.Completed += grown(from.Completed, to.Completed)
	c.Failed += grown(from.Failed, to.Failed)
	c.DeadLettered += grown(from.DeadLettered, to.DeadLettered)
	c.Preempted += grown(from.Preempted, to.Preempted)
}

// grown is how much a total has grown. One that shrinks began again.
func grown(from, to uint64) uint64 {
	if to < from {
		return 0
	}
	return to - from
}

// Pool is a pool as it is listed.
type Pool struct {
	Name    string   `json:"name"`
	Source  string   `json:"source"`  // that it is announced at
	Sources []string `json:"sources"` // the first of them, if there are many
	// Paused and OrderedSlots are its orders; no slots means that it decides itself.
	Paused       bool `json:"paused"`
	OrderedSlots int  `json:"orderedSlots,omitzero"`

	// These are sums over the instances.
	Slots     int     `json:"slots"`
	Busy      int     `json:"busy"`
	Suspended int     `json:"suspended"`
	Retrying  int     `json:"retrying"`
	PerSecond float64 `json:"completedPerSecond"` // in the last seconds

	Counts               // since the broker started, of all instances that it has seen
	Instances []Instance `json:"instances"`
}

// Instance is one process of a pool.
type Instance struct {
	Host      string    `json:"host"`
	Process   int       `json:"process"`
	Since     time.Time `json:"since"` // when this broker first heard of it
	Slots     int       `json:"slots"`
	Busy      int       `json:"busy"`
	Suspended int       `json:"suspended"`
	Retrying  int       `json:"retrying"`
	Paused    bool      `json:"paused"`
	Idle      string    `json:"idle,omitzero"`
	PerSecond float64   `json:"completedPerSecond"`
}

// Answer is what an instance gets for its report.
type Answer struct {
	Orders    Orders
	Instances int  // of its pool, itself included
	Retrying  int  // messages that all of them keep for a retry
	Spare     bool // no other pool that counts for it is fully busy
}

// keptSources is how many sources of a pool are shown.
const keptSources = 16

// check returns what is wrong with a report.
func (r *Report) check() error {
	if err := checkName(r.Name); err != nil {
		return err
	}
	if len(r.Sources) == 0 {
		return fmt.Errorf("%w: a pool needs a source", ErrInvalid)
	}
	if err := limits.CheckCount("sources of a pool", len(r.Sources), limits.PoolSources); err != nil {
		return err
	}
	if err := limits.CheckCount("queues beside a pool", len(r.Beside), limits.PoolSources); err != nil {
		return err
	}
	if len(r.Orders.Seal) > sealText {
		return fmt.Errorf("%w: a seal has %d characters", ErrInvalid, sealText)
	}
	for _, s := range slices.Concat(r.Sources, r.Beside) {
		if err := checkText("source", s); err != nil {
			return err
		}
	}
	if r.Instance == "" {
		return fmt.Errorf("%w: an instance needs an ID", ErrInvalid)
	}
	if err := limits.CheckBytes("instance of a pool", len(r.Instance), limits.Member); err != nil {
		return err
	}
	for _, t := range []struct{ what, text string }{{"instance", r.Instance}, {"host", r.Host}, {"idle", r.Idle}} {
		if err := checkText(t.what, t.text); err != nil {
			return err
		}
	}
	return checkSlots(r.Orders.Slots)
}

// checkName refuses names that cannot be part of a URL, a metric or a line of a table.
func checkName(name string) error {
	switch {
	case name == "", name == ".", name == "..", name != strings.TrimSpace(name), name != strings.Trim(name, "/"):
		return fmt.Errorf("%w: %q cannot be the name of a pool", ErrInvalid, name)
	}
	return checkText("name", name)
}

// checkText refuses text that is too long, or that a terminal would obey.
func checkText(what, text string) error {
	if len(text) > 4*limits.PoolText {
		return limits.CheckBytes(what+" of a pool", len(text), limits.PoolText)
	}
	if err := limits.CheckText(what+" of a pool", text, limits.PoolText); err != nil {
		return err
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return fmt.Errorf("%w: the %s of a pool has characters that cannot be printed: %q", ErrInvalid, what, text)
	}
	return nil
}

func checkSlots(n int) error {
	if n < 0 {
		return fmt.Errorf("%w: %d slots", ErrInvalid, n)
	}
	return limits.CheckCount("slots of a pool", n, limits.PoolSlots)
}
