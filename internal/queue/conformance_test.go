// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/machine/machinetest"
)

// TestConformance runs the suite of all state machines on queues with sessions, keys
// and duplicates.
func TestConformance(t *testing.T) {
	var out Effects
	var configured *Queue
	now, locked := epochStart, []Token(nil)
	cfg := Config{LockFor: time.Second, DuplicateWindow: time.Minute, TTL: time.Hour, MaxFailures: 2, Order: Order{LevelOrder: FinishFirst}}
	command := func(rnd *rand.Rand, m machine.Machine, body func(int) Ref) {
		q := m.(*Queue)
		if q != configured {
			configured, now, locked = q, epochStart, nil
			q.Configure(now, cfg, &out)
		}
		now = now.Add(time.Duration(rnd.IntN(300)) * time.Millisecond)
		switch n := rnd.IntN(10); {
		case n < 4:
			a := Arrival{Body: body(1 + rnd.IntN(50)), Level: Level(rnd.IntN(4)), Key: fmt.Sprint(rnd.IntN(3))}
			if rnd.IntN(2) == 0 {
				a.MessageID = fmt.Sprint(rnd.IntN(40))
			}
			if rnd.IntN(4) == 0 {
				a.NotBefore = now.Add(time.Second)
			}
			if err := q.Enqueue(now, []Arrival{a}, make([]SeqNo, 1), &out); err != nil {
				t.Fatal(err)
			}
		case n < 6:
			if d, ok := q.Take(now, TakeOptions{}, &out); ok {
				locked = append(locked, d.Token)
			}
		case n < 8 && len(locked) > 0:
			i := rnd.IntN(len(locked))
			token := locked[i]
			switch rnd.IntN(4) { // whose lock may have ended
			case 0:
				_, _ = q.RenewDurably(now, token, &out)
				return
			case 1:
				if q.LockValid(now, token) {
					_ = q.Save(now, token, body(9), &out)
				}
				return
			}
			locked = append(locked[:i], locked[i+1:]...)
			retry := func(now time.Time, t Token, out *Effects) (Settled, error) {
				return q.Retry(now, t, now.Add(2*time.Second), out)
			}
			settle := []func(time.Time, Token, *Effects) (Settled, error){q.Complete, q.Abandon, q.Defer, q.Release, retry}[rnd.IntN(5)]
			_, _ = settle(now, token, &out) // its lock may have ended
		case n == 8:
			q.SetSessionState(now, fmt.Sprint(rnd.IntN(5)), body(5), &out)
		default:
			q.Tick(now, &out)
		}
		out.ResetLeft()
	}
	machinetest.Run(t, machinetest.Subject{
		New:     func() machine.Machine { return New(Config{}, 1) },
		Out:     &out.Effects,
		Command: command,
		State: func(m machine.Machine) string {
			d := m.(*Queue).StateHash(now)
			return fmt.Sprintf("%x", d[:8])
		},
		Item: 300,
	}, 8)
}
