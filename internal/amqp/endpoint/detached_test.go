// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// countingApp counts what it is told about each link.
type countingApp struct {
	nullApp
	t        *testing.T
	rng      *rand.Rand
	links    []*Link // that are not gone, as far as the App knows
	attached map[*Link]int
	gone     map[*Link]int
	inside   bool // a method of a link is running
	closed   int
}

func (a *countingApp) Attach(l *Link) {
	a.attached[l]++
	a.links = append(a.links, l)
	switch a.rng.IntN(4) {
	case 0: // later
	case 1:
		a.call(func() { l.Refuse(Errorf(CondNotFound, "no")) })
	default:
		a.call(func() { l.Accept(Accept{Credit: 5}) })
	}
}

// call calls a method of a link, from which the App must not be called back.
func (a *countingApp) call(f func()) {
	was := a.inside
	a.inside = true
	f()
	a.inside = was
}

func (a *countingApp) Detached(l *Link, err error) {
	if a.inside {
		a.t.Error("the App was called from inside a method of Link")
	}
	if a.closed > 0 {
		a.t.Error("detached after closed")
	}
	if l.Attached() {
		a.t.Error("a link is attached when the App is told that it is gone")
	}
	a.gone[l]++
	for i := range a.links {
		if a.links[i] == l {
			a.links = append(a.links[:i:i], a.links[i+1:]...)
			break
		}
	}
	if a.rng.IntN(3) == 0 && len(a.links) > 0 { // one goes, and takes another with it
		a.call(func() { a.links[a.rng.IntN(len(a.links))].Detach(nil) })
	}
}

func (a *countingApp) Closed(error) { a.closed++ }

// No matter who ends a link, the App is notified once,
// and of every link that it was asked for.
func TestEveryLinkEndsOnce(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 14))
		app := &countingApp{t: t, rng: rng, attached: map[*Link]int{}, gone: map[*Link]int{}}
		m := NewMachine(app, Config{}, time.Unix(0, 0))
		feed := func(b []byte) bool { return m.Feed(time.Unix(0, 0), b) == nil }
		feed(opening())
		begun := map[uint16]bool{}
		handles := map[[2]uint32]bool{} // that the peer thinks are attached
		for range 60 {
			ch := uint16(rng.IntN(2))
			if !begun[ch] {
				begun[ch] = feed(encode(0, ch, &frame.Begin{IncomingWindow: 100, HandleMax: 50}, nil))
				continue
			}
			h := uint32(rng.IntN(6))
			at := [2]uint32{uint32(ch), h}
			switch k := rng.IntN(12); {
			case k < 5 && !handles[at]:
				handles[at] = true
				a := &frame.Attach{Name: fmt.Sprint(rng.IntN(8)), Handle: h, Role: frame.Role(rng.IntN(2) == 0)}
				feed(encode(0, ch, a, nil))
			case k < 7 && handles[at]:
				delete(handles, at)
				feed(encode(0, ch, &frame.Detach{Handle: h, Closed: true}, nil))
			case k < 10 && len(app.links) > 0:
				l := app.links[rng.IntN(len(app.links))]
				switch rng.IntN(3) {
				case 0:
					app.call(func() { l.Accept(Accept{Credit: 5}) })
				default:
					app.call(func() { l.Detach(Errorf(CondDetachForced, "enough")) })
				}
				m.Advance(time.Unix(0, 0))
			case k == 10 && rng.IntN(4) == 0:
				begun[ch] = false
				for at := range handles {
					if at[0] == uint32(ch) {
						delete(handles, at)
					}
				}
				feed(encode(0, ch, new(frame.End), nil))
			case k == 11 && handles[at] && rng.IntN(4) == 0: // without credit, or on the wrong kind of link
				feed(encode(0, ch, &frame.Transfer{Handle: h, HasDeliveryID: true, DeliveryTag: []byte("t")}, nil))
			}
			m.Take()
		}
		if rng.IntN(2) == 0 {
			m.Abort(errIdle)
		} else {
			m.Close(nil)
		}
		for l, n := range app.attached {
			if n != 1 || app.gone[l] != 1 {
				t.Fatalf("seed %d: link %q was asked for %d times and ended %d times", seed, l.Name(), n, app.gone[l])
			}
		}
		if len(app.gone) != len(app.attached) || app.closed != 1 {
			t.Fatalf("seed %d: %d links ended of %d, closed %d times", seed, len(app.gone), len(app.attached), app.closed)
		}
	}
}
