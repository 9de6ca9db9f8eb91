// SPDX-License-Identifier: Apache-2.0

package slots_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/worker/internal/slots"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func reachable(r slots.Rank) bool { return r.Source > 0 || r.Level < 255 }

func newMachine(n int) *slots.Machine {
	return slots.New(slots.Settings{Preempt: true, Budget: -1, Reachable: reachable}, n)
}

func message(id slots.ID, level uint8) slots.Message {
	return slots.Message{ID: id, Rank: slots.Rank{Level: level}}
}

// show writes actions in one line.
func show(actions []slots.Action) string {
	kinds := []string{"start", "refuse", "suspend", "cancel", "resume", "ask", "stop asking"}
	channels := []string{"main", "urgent", "poll"}
	var out []string
	for _, a := range actions {
		text := kinds[a.Kind]
		switch a.Kind {
		case slots.Ask:
			channel := channels[a.Channel]
			if a.Overdue {
				channel = "overdue"
			}
			text += fmt.Sprintf(" %s for %d", channel, a.N)
			if a.Channel != slots.Main {
				text += fmt.Sprintf(" above %d", a.Bound.Level)
			}
		case slots.StopAsking:
			text += " " + channels[a.Channel]
		default:
			text += fmt.Sprintf(" %d", a.ID)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func want(t *testing.T, what string, got []slots.Action, want string) {
	t.Helper()
	if s := show(got); s != want {
		t.Errorf("%s:\n got  %s\n want %s", what, s, want)
	}
}

func TestUrgentMessageTakesTheSlotInOneStep(t *testing.T) {
	m, now := newMachine(2), start
	want(t, "first", m.Tick(now), "ask main for 2")
	want(t, "low", m.Fetched(now, slots.Main, []slots.Message{message(1, 2), message(2, 3)}),
		"start 1, start 2, ask urgent for 1 above 2")
	want(t, "high", m.Fetched(now, slots.Urgent, []slots.Message{message(3, 9)}),
		"suspend 1, start 3, ask urgent for 1 above 3")
	want(t, "high ends", m.Ended(now, 3), "ask poll for 1 above 2")
	want(t, "nothing better", m.Fetched(now, slots.Poll, nil), "resume 1, stop asking urgent")
	want(t, "urgent stopped", m.Fetched(now, slots.Urgent, nil), "ask urgent for 1 above 2")
}

// Parked answers a Suspend that was withdrawn since. The task runs, and keeps its slot.
func TestLateParkedIsIgnored(t *testing.T) {
	m, now := newMachine(1), start
	m.Tick(now)
	m.Fetched(now, slots.Main, []slots.Message{message(1, 2)})
	m.Fetched(now, slots.Urgent, []slots.Message{message(2, 9)}) // suspend 1, turn 1
	m.Ended(now, 2)
	want(t, "poll", m.Fetched(now, slots.Poll, nil), "resume 1")
	m.Parked(now, 1, 1)
	if c := m.Counts(); c != (slots.Counts{Running: 1}) {
		t.Errorf("counts %+v, want one running", c)
	}
	m.Fetched(now, slots.Urgent, nil) // the request above 9 was withdrawn
	want(t, "high", m.Fetched(now, slots.Urgent, []slots.Message{message(3, 9)}), "suspend 1, start 3, ask urgent for 1 above 9")
}

// A message that is refused although its request was not withdrawn would come again at
// once; one whose request was withdrawn is an accident.
func TestUrgentRequestsPauseAfterARefusal(t *testing.T) {
	for _, withdrawn := range []bool{false, true} {
		m, now := newMachine(1), start
		m.Tick(now)
		m.Fetched(now, slots.Main, []slots.Message{message(1, 5)})
		if withdrawn {
			m.Hold(now)
			want(t, "held", m.Fetched(now, slots.Urgent, []slots.Message{message(2, 9)}), "refuse 2")
			want(t, "released", m.Unhold(now), "ask urgent for 1 above 5")
			continue
		}
		want(t, "below the bound", m.Fetched(now, slots.Urgent, []slots.Message{message(2, 5)}), "refuse 2")
		if got := m.Wake(); got != now.Add(time.Second) {
			t.Errorf("wake at %v, want in a second", got.Sub(now))
		}
		want(t, "after a second", m.Tick(now.Add(time.Second)), "ask urgent for 1 above 5")
	}
}

func TestMessageInANarrowedPoolIsRefused(t *testing.T) {
	m, now := newMachine(2), start
	m.Tick(now)
	want(t, "resize", m.Resize(now, 1), "stop asking main")
	want(t, "two come", m.Fetched(now, slots.Main, []slots.Message{message(1, 4), message(2, 4)}),
		"start 1, refuse 2, ask urgent for 1 above 4")
}

func TestOnlyOverdueMessagesStartWhileHolding(t *testing.T) {
	m := newMachine(2)
	m.Tick(start)
	want(t, "hold", m.Hold(start), "stop asking main")
	want(t, "what was on its way", m.Fetched(start, slots.Main, []slots.Message{message(1, 4)}), "refuse 1")
	want(t, "three are overdue", m.Overdue(start, 3), "ask overdue for 2")
	want(t, "they come", m.Fetched(start, slots.Main, []slots.Message{message(2, 4), message(3, 4)}), "start 2, start 3")
	want(t, "one is overdue", m.Overdue(start, 1), "")
	want(t, "a slot is free", m.Ended(start, 2), "ask overdue for 1")
	want(t, "the pool is paused", m.Pause(start), "suspend 3, stop asking main")
	want(t, "it came all the same", m.Fetched(start, slots.Main, []slots.Message{message(4, 4)}), "refuse 4")
	want(t, "it goes on", m.Unpause(start), "resume 3")
	want(t, "two are overdue", m.Overdue(start, 2), "ask overdue for 1")
	want(t, "none is there", m.Fetched(start, slots.Main, nil), "")
	want(t, "the hold ends", m.Unhold(start), "ask main for 1")
}

func TestTaskThatCannotWaitKeepsRunning(t *testing.T) {
	m, now := newMachine(1), start
	m.Tick(now)
	m.Fetched(now, slots.Main, []slots.Message{message(1, 2)})
	m.Fetched(now, slots.Urgent, []slots.Message{message(2, 9)})
	m.NotParked(now, 1, 1)
	if c := m.Counts(); c != (slots.Counts{Running: 2}) {
		t.Errorf("counts %+v, want two running", c)
	}
	want(t, "one ends", m.Ended(now, 2), "stop asking urgent")
	want(t, "the other ends", m.Ended(now, 1), "ask main for 1")
}

// A task that waits in place goes on when the machine stops, whatever comes before or
// after the stop.
func TestStopLetsTasksGoOn(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after func(*slots.Machine) []slots.Action
		want          string
	}{
		{"paused before", func(m *slots.Machine) []slots.Action { return m.Pause(start) }, nil, "resume 1"},
		{"paused after", nil, func(m *slots.Machine) []slots.Action { return m.Pause(start) }, ""},
	} {
		m := newMachine(1)
		m.Tick(start)
		m.Fetched(start, slots.Main, []slots.Message{message(1, 9)})
		if c.before != nil {
			c.before(m)
		}
		m.Fetched(start, slots.Urgent, nil)
		got := m.Stop(start)
		if c.after != nil {
			got = append(got, c.after(m)...)
		}
		got = only(got, slots.Suspend, slots.Resume)
		want(t, c.name, got, c.want)
	}
}

// only returns the actions of two kinds.
func only(actions []slots.Action, a, b slots.Kind) []slots.Action {
	return slices.DeleteFunc(actions, func(o slots.Action) bool { return o.Kind != a && o.Kind != b })
}

// Cancelled tasks that do not return are bounded.
func TestStubbornTasksAreBounded(t *testing.T) {
	m := slots.New(slots.Settings{Preempt: true, Cancel: true, Budget: -1, Reachable: reachable}, 1)
	asks := func(actions []slots.Action, c slots.Channel) bool {
		return slices.ContainsFunc(actions, func(a slots.Action) bool { return a.Kind == slots.Ask && a.Channel == c })
	}
	got, id := m.Tick(start), slots.ID(0)
	for asks(got, slots.Main) && id < 100 {
		low, high := id+1, id+2
		id = high
		m.Fetched(start, slots.Urgent, nil)
		m.Fetched(start, slots.Main, []slots.Message{message(low, 2)})
		m.Fetched(start, slots.Urgent, []slots.Message{message(high, 9)}) // cancels low, which goes on
		got = m.Ended(start, high)
	}
	if id != 4 {
		t.Errorf("with one slot %d tasks run that were cancelled, want 2", id/2)
	}
	want(t, "one returns", m.Ended(start, 1), "ask main for 1")
}

// world drives a machine at random and checks its invariants after each step.
type world struct {
	t        *testing.T
	rng      *rand.Rand
	m        *slots.Machine
	now      time.Time
	slots    int
	slack    int // tasks above slots that may go on
	last     slots.ID
	running  []slots.ID // have a slot
	away     map[slots.ID]uint32
	inFlight [slots.Channels]int
}

func TestInvariantsHoldInRandomOrder(t *testing.T) {
	for seed := range uint64(2000) {
		w := &world{
			t: t, rng: rand.New(rand.NewPCG(seed, 0)), now: start, slots: 2, away: map[slots.ID]uint32{},
		}
		w.m = slots.New(slots.Settings{
			Preempt: seed%3 > 0, Cancel: seed%5 == 0, Budget: -1, MinRun: time.Duration(seed%2) * time.Second, Reachable: reachable,
		}, 2)
		w.apply(w.m.Tick(w.now))
		for range 200 {
			w.step()
		}
		w.finish()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func (w *world) step() {
	w.now = w.now.Add(time.Duration(w.rng.IntN(500)) * time.Millisecond)
	switch n := w.rng.IntN(20); {
	case n < 8:
		w.answer(slots.Channel(w.rng.IntN(int(slots.Channels))), w.rng.IntN(3))
	case n < 12 && len(w.running) > 0:
		w.end(w.running[w.rng.IntN(len(w.running))])
	case n < 14:
		for id, turn := range w.away {
			w.apply(w.m.Parked(w.now, id, turn))
			break
		}
	case n == 14:
		w.slots = w.rng.IntN(4)
		w.slack = max(0, len(w.running)-w.slots)
		w.apply(w.m.Resize(w.now, w.slots))
	case n == 15:
		w.apply(w.m.Pause(w.now))
	case n == 16:
		w.apply(w.m.Unpause(w.now))
	case n == 17:
		for id := range w.away {
			w.apply(w.m.Leaving(w.now, id))
			w.end(id)
			break
		}
	case n == 18:
		switch w.rng.IntN(4) {
		case 0:
			w.apply(w.m.Hold(w.now))
		case 1:
			w.apply(w.m.Overdue(w.now, w.rng.IntN(4)))
		default:
			w.apply(w.m.Unhold(w.now))
		}
	default:
		w.apply(w.m.Tick(w.now))
	}
}

// answer answers a request with up to n messages.
func (w *world) answer(c slots.Channel, n int) {
	if w.inFlight[c] == 0 {
		return
	}
	var ms []slots.Message
	for range min(n, w.inFlight[c]) {
		w.last++
		ms = append(ms, message(w.last, uint8(w.rng.IntN(10))))
	}
	w.inFlight[c] = 0
	w.apply(w.m.Fetched(w.now, c, ms))
}

func (w *world) end(id slots.ID) {
	w.running = slices.DeleteFunc(w.running, func(o slots.ID) bool { return o == id })
	delete(w.away, id)
	w.apply(w.m.Ended(w.now, id))
}

func (w *world) apply(actions []slots.Action) {
	for _, a := range actions {
		switch a.Kind {
		case slots.Start:
			w.running = append(w.running, a.ID)
		case slots.Suspend, slots.Cancel:
			if !slices.Contains(w.running, a.ID) {
				w.t.Errorf("task %d is to wait, and has no slot", a.ID)
			}
			w.running = slices.DeleteFunc(w.running, func(o slots.ID) bool { return o == a.ID })
			w.away[a.ID] = a.Turn
		case slots.Resume:
			if _, waits := w.away[a.ID]; !waits {
				w.t.Errorf("task %d goes on, and did not wait", a.ID)
			}
			delete(w.away, a.ID)
			w.running = append(w.running, a.ID)
		case slots.Ask:
			if w.inFlight[a.Channel] != 0 {
				w.t.Errorf("two requests on channel %d", a.Channel)
			}
			if a.Channel == slots.Main && a.N > w.slots-len(w.running) {
				w.t.Errorf("%d messages asked for with %d of %d slots taken", a.N, len(w.running), w.slots)
			}
			w.inFlight[a.Channel] = a.N
		}
	}
	w.slack = min(w.slack, max(0, len(w.running)-w.slots))
	if len(w.running) > w.slots+w.slack {
		w.t.Errorf("%d tasks have a slot, want at most %d", len(w.running), w.slots+w.slack)
	}
	if c := w.m.Counts(); c.Running != len(w.running) || c.Yielding+c.Parked != len(w.away) {
		w.t.Errorf("counts %+v, want %d with a slot and %d without", c, len(w.running), len(w.away))
	}
}

// finish stops the machine and ends what runs. Then nothing may be left.
func (w *world) finish() {
	w.slots, w.slack = 1, max(0, len(w.running)-1)
	w.apply(w.m.Resize(w.now, 1))
	w.apply(w.m.Stop(w.now))
	for c := range slots.Channels {
		w.answer(c, 0)
	}
	for range 1000 {
		if len(w.running) > 0 {
			w.end(w.running[0])
		}
		for id, turn := range w.away {
			if turn == 0 { // cancelled
				w.end(id)
			}
		}
	}
	if !w.m.Idle() {
		w.t.Errorf("after the stop %d tasks run and %d wait", len(w.running), len(w.away))
	}
}

func TestTurnsAreSmooth(t *testing.T) {
	turns := slots.NewTurns([]int{3, 1})
	var got []string
	for range 8 {
		for i, n := range turns.Share(1, []bool{false, false}) {
			if n > 0 {
				got = append(got, string(rune('a'+i)))
			}
		}
	}
	if s := strings.Join(got, ""); s != "aabaaaba" {
		t.Errorf("turns %s, want aabaaaba", s)
	}
	if got := turns.Share(4, []bool{true, false}); !slices.Equal(got, []int{0, 4}) {
		t.Errorf("with a empty the shares are %v", got)
	}
	if got := turns.Share(1, []bool{true, true}); got != nil {
		t.Errorf("with all empty the shares are %v", got)
	}
}
