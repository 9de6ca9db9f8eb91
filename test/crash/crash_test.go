// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/vfs"
)

// ledger is what the parent knows about every message.
type ledger struct {
	t       *testing.T
	safe    map[string]bool // acknowledged, or seen after a kill; not completed
	trying  map[string]bool // completed perhaps
	done    map[string]bool // completed for sure
	listed  map[string]bool // by the child that is starting
	sent    int
	settled int
}

func newLedger(t *testing.T) *ledger {
	return &ledger{t: t, safe: map[string]bool{}, trying: map[string]bool{}, done: map[string]bool{}, listed: map[string]bool{}}
}

// hear takes in one line of a child and reports whether it is ready for load.
func (l *ledger) hear(line string) (ready bool) {
	words := strings.Fields(line)
	switch words[0] {
	case saysHas:
		l.listed[words[1]] = true
	case saysReady:
		l.compare()
		return true
	case saysSent:
		size, err := strconv.Atoi(words[2])
		if err != nil {
			l.t.Fatalf("the child says %q", line)
		}
		for i := range size {
			if id := member(words[1], i, size); !l.done[id] {
				l.safe[id] = true
			}
		}
		l.sent += size
	case saysTrying:
		l.trying[words[1]] = true
	case saysCompleted:
		l.done[words[1]] = true
		delete(l.safe, words[1])
		l.settled++
	default:
		l.t.Fatalf("the child says %q", line)
	}
	return false
}

// compare checks what a start found against what was acknowledged.
func (l *ledger) compare() {
	lost, back, torn := 0, 0, 0
	for id := range l.safe {
		if !l.listed[id] && !l.trying[id] {
			lost++
			l.t.Errorf("message %s was acknowledged and is lost", id)
		}
	}
	for id := range l.listed {
		if l.done[id] {
			back++
			l.t.Errorf("message %s was completed and is back", id)
		}
		for _, other := range batchOf(id) {
			if !l.listed[other] && !l.trying[other] && !l.done[other] {
				torn++
				l.t.Errorf("message %s is there and %s of the same batch is not", id, other)
			}
		}
	}
	if lost+back+torn > 0 {
		l.t.Fatalf("%d lost, %d back, %d torn from their batch", lost, back, torn)
	}
	// For messages that were being completed it is now known whether they still
	// exist.
	for id := range l.trying {
		if !l.listed[id] {
			l.done[id] = true
		}
	}
	l.safe, l.listed, l.trying = l.listed, map[string]bool{}, map[string]bool{}
}

// batchOf returns the ids of all messages that were sent with one.
func batchOf(id string) (ids []string) {
	parts := strings.Split(id, "/")
	size, err := strconv.Atoi(parts[2])
	if err != nil {
		return nil
	}
	for i := range size {
		ids = append(ids, member(parts[0], i, size))
	}
	return ids
}

// runLife runs a child until it is killed, some time after it was ready. hear takes in
// what it says and reports that it is.
func runLife(t *testing.T, dir string, n int, after time.Duration, hear func(line string) bool, env ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childDir+"="+dir, fmt.Sprintf("%s=%d", childLife, n)), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var timer *time.Timer
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // the pipe ends with the child, and half a line does not count
		}
		if hear(line) {
			timer = time.AfterFunc(after, func() { _ = cmd.Process.Kill() }) // fails if it has ended, which Wait reports
		}
	}
	_ = cmd.Wait() // it was killed
	if timer == nil {
		t.Fatalf("life %d: the child ended before it was ready", n)
	}
	if timer.Stop() {
		t.Fatalf("life %d: the child ended by itself: %v", n, cmd.ProcessState)
	}
}

// checkOrder checks that messages arrived in the order of their queue's policy:
// they must have kept their class and their age. A dead letter has a new
// sequence number, in the order in which messages failed; its age decides.
func checkOrder(t *testing.T, address string, fs []found) {
	t.Helper()
	level := func(a, b found) int { return cmp.Compare(b.level, a.level) }
	switch address {
	case "invoices": // all have risen as far as they can, so age decides
		level = func(found, found) int { return 0 }
	case "reports": // an objective of one hour goes before one of thirty
		level = func(a, b found) int { return cmp.Compare(a.level, b.level) }
	case "mail": // levels and keys are served round robin
		return
	}
	if !slices.IsSortedFunc(fs, func(a, b found) int { return cmp.Or(level(a, b), a.sent.Compare(b.sent), cmp.Compare(a.seq, b.seq)) }) {
		t.Errorf("%s: the last messages did not arrive in order", address)
	}
	for _, f := range fs {
		if first := strings.Contains(f.id, "/0/"); address == "reports" && first != (f.level == 2) {
			t.Errorf("%s: message %s has level %d", address, f.id, f.level)
		}
	}
}

// loops is how often a broker is killed.
func loops(t *testing.T) int {
	s := os.Getenv("CRASH_LOOPS")
	if s == "" {
		return 50
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("CRASH_LOOPS: %v", err)
	}
	return n
}

func TestKilledBrokerKeepsItsWord(t *testing.T) {
	dir, l := t.TempDir(), newLedger(t)
	n := loops(t)
	for life := range n {
		runLife(t, dir, life, time.Duration(rand.IntN(300))*time.Millisecond, l.hear)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b, err := open(ctx, vfs.OS(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	}()
	all, err := b.list(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		l.listed[f.id] = true
	}
	l.compare()
	drained, err := b.drain(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(drained) != len(l.safe) {
		t.Errorf("drained %d messages, %d were there", len(drained), len(l.safe))
	}
	for _, address := range addresses() {
		checkOrder(t, address, slices.DeleteFunc(slices.Clone(drained), func(f found) bool { return f.address != address }))
	}
	t.Logf("%d kills: %d messages acknowledged, %d completed, %d drained at the end; nothing lost, nothing back",
		n, l.sent, l.settled, len(drained))
}
