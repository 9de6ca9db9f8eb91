// SPDX-License-Identifier: Apache-2.0

//go:build linux

package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/triagemq/triagemq/client"
)

// state is what is known of a message.
type state uint8

const (
	absent     state = iota // never sent, rejected, or settled: it does not exist
	sending                 // it may be there
	waiting                 // it is in its queue
	completing              // it is in its queue, or does not exist
	dying                   // it is in its queue or among its dead letters
	dead                    // it is among the dead letters
)

// place is the queue in which a message was found.
type place uint8

const (
	inQueue place = 1 << iota
	inDeadLetters
)

// may says where a message of a state can be; zero means that it does not
// exist.
func (s state) may() []place {
	return map[state][]place{
		absent:     {0},
		sending:    {0, inQueue},
		waiting:    {inQueue},
		completing: {0, inQueue},
		dying:      {inQueue, inDeadLetters},
		dead:       {inDeadLetters},
	}[s]
}

func (s state) String() string {
	return []string{"settled or refused", "being sent", "acknowledged", "being completed", "being dead-lettered", "dead-lettered"}[s]
}

// ledger is what is known of every message. Messages are numbered; the size of each
// follows from its number, and so does its body.
type ledger struct {
	t      *testing.T
	size   func(n uint64) int
	mu     sync.Mutex
	states []state // guarded by mu
	queues []uint8 // of each message, as an index of queues; guarded by mu
}

// begin returns the numbers of the next messages to send to a queue: as many as fit
// well into one transfer, so that all of them are taken or none.
func (l *ledger) begin(queue int) []uint64 {
	const maxCount, maxBytes = 200, 128 << 10
	l.mu.Lock()
	defer l.mu.Unlock()
	var ns []uint64
	for sum := 0; len(ns) < maxCount; {
		n := uint64(len(l.states))
		if sum += l.size(n); sum > maxBytes && len(ns) > 0 {
			break
		}
		ns = append(ns, n)
		l.states = append(l.states, sending)
		l.queues = append(l.queues, uint8(queue))
	}
	return ns
}

// set records the new state of messages.
func (l *ledger) set(s state, ns ...uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range ns {
		l.states[n] = s
	}
}

// count returns how many messages of a queue have a state.
func (l *ledger) count(queue int, want state) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.states {
		if s == want && int(l.queues[i]) == queue {
			n++
		}
	}
	return n
}

// total returns how many messages of all queues have a state.
func (l *ledger) total(want state) (n int) {
	for q := range queues {
		n += l.count(q, want)
	}
	return n
}

// received records that messages were delivered, and what happens to them next.
func (l *ledger) received(ms []*client.Received, next state) ([]uint64, error) {
	ns := make([]uint64, len(ms))
	for i, m := range ms {
		n, err := l.verify(m)
		if err != nil {
			return nil, err
		}
		ns[i] = n
		l.mu.Lock()
		was := l.states[n]
		if was != absent {
			l.states[n] = next
		}
		l.mu.Unlock()
		if was == absent {
			return nil, fmt.Errorf("message %d was delivered, which was settled or rejected", n)
		}
	}
	return ns, nil
}

// compare checks where a listing found each message against what is known, and
// records the states that it decides.
func (l *ledger) compare(found []place) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	faults := 0
	for n, s := range l.states {
		at := found[n]
		ok := false
		for _, p := range s.may() {
			ok = ok || at == p
		}
		if !ok {
			if faults++; faults <= 10 {
				l.t.Errorf("message %d of %d was %v; found in its queue: %v, among the dead letters: %v",
					n, len(l.states), s, at&inQueue != 0, at&inDeadLetters != 0)
			}
			continue
		}
		l.states[n] = map[place]state{0: absent, inQueue: waiting, inDeadLetters: dead}[at]
	}
	if faults > 0 {
		l.t.Fatalf("%d messages are not where they should be", faults)
	}
}

// compose makes a message.
func (l *ledger) compose(n uint64) *client.Message {
	return &client.Message{ID: strconv.FormatUint(n, 10), Body: l.body(n)}
}

// body returns bytes that differ from those of every other message.
func (l *ledger) body(n uint64) []byte {
	body := make([]byte, l.size(n)+8)
	var pattern [8]byte
	binary.BigEndian.PutUint64(pattern[:], mix(n))
	for i := 0; i < len(body); i += 8 {
		copy(body[i:], pattern[:])
	}
	return body
}

// verify returns the number of a message, or an error if it is not as it was sent.
func (l *ledger) verify(m *client.Received) (uint64, error) {
	n, err := strconv.ParseUint(m.ID, 10, 64)
	l.mu.Lock()
	known := n < uint64(len(l.states))
	l.mu.Unlock()
	if err != nil || !known {
		return 0, fmt.Errorf("message %q was never sent", m.ID)
	}
	if !bytes.Equal(m.Body, l.body(n)) {
		return 0, fmt.Errorf("message %d has another body than was sent", n)
	}
	return n, nil
}

// mix scatters numbers [splitmix64].
func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// mixed is most often a small message, and at times a large one.
func mixed(n uint64) int {
	h := mix(n)
	switch h % 20 {
	case 0:
		return int((h >> 32) % (200 << 10))
	case 1, 2, 3:
		return int((h >> 32) % (20 << 10))
	default:
		return int((h >> 32) % 1000)
	}
}

// tiny is a message of a few bytes.
func tiny(n uint64) int { return int(mix(n) % 16) }
