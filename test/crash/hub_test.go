// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

// hubLedger is what the parent knows about every event.
type hubLedger struct {
	t       *testing.T
	listed  [hubPartitions]map[int64]string // by the child that is starting
	first   [hubPartitions]int64
	last    [hubPartitions]int64
	seen    [hubPartitions]map[int64]string // by readers, ever
	sent    [hubPartitions]map[string]int   // acknowledged batches that were not dropped, with their events
	batches int
	events  int
}

func newHubLedger(t *testing.T) *hubLedger {
	l := &hubLedger{t: t}
	for p := range hubPartitions {
		l.listed[p], l.seen[p], l.sent[p] = map[int64]string{}, map[int64]string{}, map[string]int{}
	}
	return l
}

// hear takes in one line of a child and reports whether it is ready for load.
func (l *hubLedger) hear(line string) (ready bool) {
	words := strings.Fields(line)
	if words[0] == saysReady {
		l.compare()
		return true
	}
	p, err := strconv.Atoi(words[1])
	if err != nil || len(words) != 4 {
		l.t.Fatalf("the child says %q", line)
	}
	number := func(word string) int64 {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			l.t.Fatalf("the child says %q", line)
		}
		return n
	}
	switch words[0] {
	case saysFirst:
		l.first[p], l.last[p] = number(words[2]), number(words[3])
	case saysEvent:
		l.listed[p][number(words[2])] = words[3]
	case saysSeen:
		l.note(p, number(words[2]), words[3])
	case saysSent:
		l.sent[p][words[2]] = int(number(words[3]))
		l.batches++
	default:
		l.t.Fatalf("the child says %q", line)
	}
	return false
}

// note records that a reader got an event. Its number means the same event forever.
func (l *hubLedger) note(p int, seq int64, id string) {
	if was, ok := l.seen[p][seq]; ok && was != id {
		l.t.Fatalf("partition %d: event %d was %s and is %s", p, seq, was, id)
	}
	l.seen[p][seq] = id
	l.events++
}

// compare checks what a start found against what was acknowledged and read.
func (l *hubLedger) compare() {
	for p := range hubPartitions {
		listed := l.listed[p]
		if n := l.last[p] - l.first[p] + 1; int64(len(listed)) != n {
			l.t.Fatalf("partition %d has events %d to %d, and %d were read", p, l.first[p], l.last[p], len(listed))
		}
		there := map[string]bool{}
		for seq := l.first[p]; seq <= l.last[p]; seq++ {
			id, ok := listed[seq]
			if !ok {
				l.t.Fatalf("partition %d: event %d is missing between %d and %d", p, seq, l.first[p], l.last[p])
			}
			if there[id] {
				l.t.Fatalf("partition %d: event %s is there twice", p, id)
			}
			there[id] = true
		}
		for seq, id := range l.seen[p] {
			if seq > l.last[p] {
				l.t.Fatalf("partition %d: a reader got event %d (%s), which is lost: the last is %d", p, seq, id, l.last[p])
			}
			if got := listed[seq]; seq >= l.first[p] && got != id {
				l.t.Fatalf("partition %d: a reader got event %d as %s, now it is %s", p, seq, id, got)
			}
		}
		l.compareSent(p, there)
		l.listed[p] = map[int64]string{}
	}
}

// compareSent checks that acknowledged batches are there, but for those that retention
// has dropped: a sender waits for each answer, so they are older than all of its others.
func (l *hubLedger) compareSent(p int, there map[string]bool) {
	oldest := map[string]int{} // of each sender, the number of its oldest batch that is there
	for id := range there {
		sender, k := senderOf(id)
		if was, ok := oldest[sender]; !ok || k < was {
			oldest[sender] = k
		}
	}
	for id, count := range l.sent[p] {
		sender, k := senderOf(id)
		from, ok := oldest[sender]
		if !ok || k < from {
			if l.first[p] == 0 {
				l.t.Fatalf("partition %d: batch %s was acknowledged and is lost, though nothing was dropped yet", p, id)
			}
			delete(l.sent[p], id)
			continue
		}
		for i := range count {
			if event := fmt.Sprintf("%s/%d", id, i); !there[event] {
				l.t.Fatalf("partition %d: event %s was acknowledged and is lost", p, event)
			}
		}
	}
}

// senderOf takes an id apart: life.sender.number, and the event.
func senderOf(id string) (sender string, k int) {
	id, _, _ = strings.Cut(id, "/")
	at := strings.LastIndexByte(id, '.')
	k, _ = strconv.Atoi(id[at+1:])
	return id[:at], k
}

func TestKilledHubKeepsItsWord(t *testing.T) {
	dir, l := t.TempDir(), newHubLedger(t)
	n := loops(t)
	for life := range n {
		runLife(t, dir, life, time.Duration(rand.IntN(300))*time.Millisecond, l.hear, childHub+"=true")
	}
	dropped := int64(0)
	for p := range hubPartitions {
		dropped += l.first[p]
	}
	t.Logf("%d kills: %d batches acknowledged, %d events read, %d events dropped by retention; nothing lost, nothing twice",
		n, l.batches, l.events, dropped)
	if l.batches == 0 || l.events == 0 {
		t.Error("nothing was sent or read")
	}
}
