// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/limits"
)

// unauthenticated returns a machine whose peer has proved nothing, and reads nothing.
func unauthenticated(t testing.TB, app App) (*Machine, *budget.Member) {
	t.Helper()
	account := budget.NewProcess(budget.Limits{Process: 1 << 30}).Enter()
	m := NewMachine(app, Config{Account: account.Account, Unauthenticated: true}, time.Unix(0, 0))
	if err := m.Feed(time.Unix(0, 0), opening()); err != nil {
		t.Fatal(err)
	}
	return m, account
}

// refusingApp lets nobody attach anything but $cbs.
type refusingApp struct{ nullApp }

func (a *refusingApp) Attach(l *Link) {
	if l.Address() != "$cbs" {
		l.Refuse(Errorf(CondUnauthorizedAccess, "Unauthorized access to %q.", l.Address()))
		return
	}
	a.nullApp.Attach(l)
}

func attachOf(i int, a frame.Attach) []byte {
	a.Name, a.Handle = fmt.Sprint("link ", i), uint32(i)
	return encode(0, 0, &a, nil)
}

// Whatever a peer sends that has not logged
// in, it makes us hold 64 KiB at most. It is not read from, or it is cut off.
func TestUnauthenticatedPeerHoldsLittle(t *testing.T) {
	symbols := make([]string, frame.MaxSymbols)
	begin := encode(0, 0, &frame.Begin{IncomingWindow: math.MaxUint32, HandleMax: math.MaxUint32}, nil)
	cbs := frame.Attach{Target: &frame.Target{Address: "$cbs"}}
	for name, frames := range map[string]func(i int) []byte{
		"attaches with many symbols": func(i int) []byte {
			return attachOf(i, frame.Attach{Role: frame.Receiver, OfferedCapabilities: symbols, DesiredCapabilities: symbols,
				Source: &frame.Source{Address: "q", Outcomes: symbols, Capabilities: symbols}})
		},
		"refused links": func(i int) []byte { return attachOf(i, frame.Attach{Target: &frame.Target{Address: "q"}}) },
		"large refused links": func(i int) []byte {
			return attachOf(i, frame.Attach{Target: &frame.Target{Address: strings.Repeat("x", 3900)}})
		},
		"very large attaches": func(i int) []byte {
			return attachOf(i, frame.Attach{Target: &frame.Target{Address: strings.Repeat("x", 15000)}})
		},
		"links to $cbs": func(i int) []byte { return attachOf(i, cbs) },
		"sessions": func(i int) []byte {
			return encode(0, uint16(1+i), &frame.Begin{IncomingWindow: 5, HandleMax: 5}, nil)
		},
		"sessions on high channels": func(i int) []byte {
			return encode(0, uint16(4999-i), &frame.Begin{IncomingWindow: 5, HandleMax: 5}, nil)
		},
		"sessions that end": func(i int) []byte {
			return slicesOf(encode(0, 7, &frame.Begin{IncomingWindow: 5, HandleMax: 5}, nil), encode(0, 7, new(frame.End), nil))
		},
		"flows that want an answer": func(int) []byte {
			return encode(0, 0, &frame.Flow{IncomingWindow: 5, Echo: true}, nil)
		},
		"unfinished deliveries": func(i int) []byte {
			if i%20 == 0 {
				return attachOf(i/20, cbs)
			}
			return encode(0, 0, &frame.Transfer{Handle: uint32(i / 20), HasDeliveryID: i%20 == 1, DeliveryTag: []byte("t"), More: true}, make([]byte, 3000))
		},
		"half a frame": func(i int) []byte {
			b := encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("t")}, make([]byte, 16000))
			return b[:len(b)-1]
		},
		"large frames": func(i int) []byte {
			if i == 0 {
				return attachOf(0, cbs)
			}
			return encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryID: uint32(i), DeliveryTag: []byte("t")}, make([]byte, 60000))
		},
		"many large tags": func(i int) []byte {
			if i%2 == 0 {
				return attachOf(i/2, cbs)
			}
			return encode(0, 0, &frame.Transfer{Handle: uint32(i / 2), HasDeliveryID: true, DeliveryTag: make([]byte, 15000), More: true}, nil)
		},
	} {
		m, account := unauthenticated(t, new(refusingApp))
		var err error
		ended := ""
		err = m.Feed(time.Unix(0, 0), begin)
		for i := 0; i < 2000 && ended == ""; i++ {
			if err = m.Feed(time.Unix(0, 0), frames(i)); err != nil {
				ended = err.Error()
			} else if _, paused := m.Paused(); paused {
				ended = "paused"
			}
			// A single step over the edge is what makes us cut it off.
			if used := account.Used(); used > budget.UnauthenticatedLimit+32<<10 || ended == "" && used > budget.UnauthenticatedLimit {
				t.Errorf("%s: %d bytes are held after %d frames", name, used, i)
				break
			}
		}
		// Answers to flows are put together until somebody reads them.
		if ended == "" && name != "flows that want an answer" {
			t.Errorf("%s: nobody stops them", name)
		}
		if e, ok := errors.AsType[*Error](err); err != nil && (!ok || e.Condition != CondResourceLimitExceeded && e.Condition != CondFramingError && e.Condition != CondUnattachedHandle) {
			t.Errorf("%s: the peer is told %v", name, err)
		}
		t.Logf("%s: %d bytes, %s", name, account.Used(), ended)
		m.Release()
		if account.Used() != 0 {
			t.Errorf("%s: %d bytes are charged after the end", name, account.Used())
		}
	}
}

// A peer that does not read our answers is not read from, until it has read them.
func TestUnreadAnswersPauseThePeer(t *testing.T) {
	m, _ := unauthenticated(t, new(nullApp))
	echo := slicesOf(encode(0, 0, &frame.Begin{IncomingWindow: 5, HandleMax: 5}, nil))
	for range 5000 {
		echo = append(echo, slicesOf(encode(0, 1, &frame.Begin{IncomingWindow: 5, HandleMax: 5}, nil), encode(0, 1, new(frame.End), nil))...)
	}
	heard, rounds := 0, 0
	for rest, paused := echo, true; paused; rounds++ {
		if err := m.Feed(time.Unix(0, 0), rest); err != nil {
			t.Fatal(err)
		}
		rest, paused = m.Paused()
		if n := m.out.len(); n > 2*limits.UnauthenticatedAnswers {
			t.Fatalf("%d bytes wait to be read", n)
		}
		heard += len(m.Take())
	}
	if rounds < 5 || heard < 5000*20 {
		t.Errorf("all was answered in %d rounds, with %d bytes", rounds, heard)
	}
}

// Who has logged in may do what others may, with the same connection.
func TestKnownPeerMayDoMore(t *testing.T) {
	m, account := unauthenticated(t, new(nullApp))
	m.Feed(time.Unix(0, 0), encode(0, 0, &frame.Begin{IncomingWindow: 5, HandleMax: 500}, nil))
	for i := range 300 {
		if i == 3 {
			account.Prove(budget.Owner{Key: "key"})
			m.known()
		}
		if err := m.Feed(time.Unix(0, 0), attachOf(i, frame.Attach{Target: &frame.Target{Address: strings.Repeat("x", 1000*(i/3))[:min(1000*(i/3), 50000)]}})); err != nil {
			t.Fatalf("link %d: %v", i, err)
		}
		m.Take()
	}
	if m.links != 300 || account.Used() < 300*linkCost {
		t.Errorf("%d links take %d bytes", m.links, account.Used())
	}
	m.Release()
	if account.Used() != 0 {
		t.Errorf("%d bytes are charged after the end", account.Used())
	}
}

// Links that were refused count until the peer has answered, and for nothing after.
func TestRefusedLinksCount(t *testing.T) {
	account := budget.New(1 << 30)
	m := NewMachine(new(refusingApp), Config{MaxLinks: 10, Account: account}, time.Unix(0, 0))
	m.Feed(time.Unix(0, 0), slicesOf(opening(), encode(0, 0, &frame.Begin{IncomingWindow: 5, HandleMax: 500}, nil)))
	m.Take()
	m.measure()
	before := m.mem.counter.Used()
	for i := range 5 * (10 + limits.RefusedLinks) { // one that answers may be refused without limit
		h := uint32(i % 10)
		if err := m.Feed(time.Unix(0, 0), slicesOf(attachOf(int(h), frame.Attach{Target: &frame.Target{Address: "q"}}), encode(0, 0, &frame.Detach{Handle: h, Closed: true}, nil))); err != nil {
			t.Fatal(err)
		}
		m.Take()
	}
	m.out.bytes, m.out.spare = nil, nil
	m.measure()
	if now := m.mem.counter.Used(); m.links != 0 || now > before {
		t.Errorf("%d links are left, and %d bytes instead of %d", m.links, now, before)
	}
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		err = m.Feed(time.Unix(0, 0), attachOf(n, frame.Attach{Target: &frame.Target{Address: "q"}}))
		m.Take()
	}
	if e, ok := errors.AsType[*Error](err); !ok || e.Condition != CondResourceLimitExceeded || n != 10+limits.RefusedLinks+1 {
		t.Errorf("after %d links: %v", n, err)
	}
}

// Whatever happens to a connection, in the end nothing is charged, and what is counted
// along the way agrees with what is there.
func TestChargesAgreeWithWhatIsThere(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 16))
		root := budget.New(1 << 30)
		account := root.Child(1 << 29)
		app := newQueueApp()
		m := NewMachine(app, Config{Account: account, MaxPartial: 100000}, time.Unix(0, 0))
		m.Feed(time.Unix(0, 0), opening())
		links := map[uint32]bool{}
		begun := false
		for range 150 {
			h := uint32(rng.IntN(4))
			var b []byte
			switch k := rng.IntN(10); {
			case !begun:
				b, begun = encode(0, 0, &frame.Begin{IncomingWindow: uint32(rng.IntN(5)), HandleMax: 9}, nil), true
			case k < 2 && !links[h]:
				links[h] = true
				a := &frame.Attach{Name: fmt.Sprint(h), Handle: h, Role: frame.Role(h%2 == 0),
					Source: &frame.Source{Address: "q"}, Target: &frame.Target{Address: "q"}}
				b = encode(0, 0, a, nil)
			case k == 2 && links[h]:
				delete(links, h)
				b = encode(0, 0, &frame.Detach{Handle: h, Closed: true}, nil)
			case k < 6 && links[h] && h%2 == 1:
				b = encode(0, 0, &frame.Transfer{Handle: h, HasDeliveryID: true, DeliveryID: h, DeliveryTag: []byte("t"), More: rng.IntN(2) == 0}, make([]byte, rng.IntN(5000)))
			case k < 8 && links[h] && h%2 == 0:
				b = encode(0, 0, &frame.Flow{HasNextIncomingID: true, NextIncomingID: m.session(0).nextOut, IncomingWindow: uint32(rng.IntN(5)),
					Handle: h, HasHandle: true, HasLinkCredit: true, LinkCredit: uint32(rng.IntN(20)), HasDeliveryCount: true}, nil)
			case k == 8:
				first := uint32(rng.IntN(30))
				b = encode(0, 0, &frame.Disposition{Role: frame.Receiver, First: first, Last: first + uint32(rng.IntN(5)), Settled: rng.IntN(2) == 0, State: frame.Accepted()}, nil)
			case k == 9 && rng.IntN(10) == 0:
				b, begun = encode(0, 0, new(frame.End), nil), false
				clear(links)
			}
			if m.Feed(time.Unix(0, 0), b) != nil {
				break
			}
			if rng.IntN(3) == 0 {
				m.Take()
			}
			m.checkCounts(t, seed)
		}
		m.Abort(errors.New("over"))
		m.Take()
		m.Release()
		if root.Used() != 0 {
			t.Fatalf("seed %d: %d bytes are charged after the end", seed, root.Used())
		}
	}
}

// checkCounts compares what is counted with what is there.
func (m *Machine) checkCounts(t *testing.T, seed uint64) {
	t.Helper()
	var waits, queue, owed, unsettled, links, partial int
	for _, s := range m.sessions.all() {
		all := s.queue
		unsettled += s.sent.size()
		owed += len(s.received.list) + len(s.settled.list)
		for _, l := range s.links.all() {
			links++
			partial += len(l.body)
			all = append(all[:len(all):len(all)], l.parked...)
			if l.Role() == frame.Sender && l.leaving() > l.credit && l.state == attached {
				t.Fatalf("seed %d: %d deliveries leave with a credit of %d", seed, l.leaving(), l.credit)
			}
		}
		waits += len(all)
		for _, w := range all {
			queue += len(w.Payload)
		}
	}
	got := []int{m.mem.waiting, m.out.queue, m.mem.owed, m.mem.unsettled, m.links, m.partial}
	want := []int{waits, queue, owed, unsettled, links, partial}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("seed %d: waiting, queue, owed, unsettled, links, partial are counted as %v, and are %v", seed, got, want)
	}
}

// A link that waited for congestion to end and was detached meanwhile is not kept for it:
// a peer that never opens its session's window could have any number of them kept, each
// with its attach, for nothing.
func TestDetachedLinksAreNotKeptUntilCongestionEnds(t *testing.T) {
	app := &nullApp{body: make([]byte, 100_000)}
	m := NewMachine(app, Config{Account: budget.New(1 << 30)}, time.Unix(0, 0))
	feed := func(bs ...[]byte) {
		t.Helper()
		if err := m.Feed(time.Unix(0, 0), slicesOf(bs...)); err != nil {
			t.Fatal(err)
		}
		m.Take()
	}
	attach := func(h uint32) []byte {
		return encode(0, 0, &frame.Attach{Name: fmt.Sprint(h), Handle: h, Role: frame.Receiver,
			Source: &frame.Source{Address: strings.Repeat("x", limits.LinkAddress)}}, nil)
	}
	credit := func(h uint32) []byte {
		return encode(0, 0, &frame.Flow{HasNextIncomingID: true, Handle: h, HasHandle: true, HasLinkCredit: true, LinkCredit: 20, HasDeliveryCount: true}, nil)
	}
	feed(opening(), encode(0, 0, &frame.Begin{HandleMax: 9}, nil), attach(0), credit(0))
	if !m.congested() {
		t.Fatal("2 MB wait for the window, and nothing is congested")
	}
	for range 2000 {
		feed(attach(1), credit(1), encode(0, 0, &frame.Detach{Handle: 1, Closed: true}, nil))
	}
	if n := len(m.blocked); n > 100 {
		t.Errorf("%d links are kept, of which there is %d", n, m.links)
	}
	// The one that is there goes on when the window opens.
	feed(encode(0, 0, &frame.Flow{HasNextIncomingID: true, IncomingWindow: 1000}, nil))
	if m.session(0).nextOut == 0 || m.out.queue > 0 {
		t.Errorf("the window is open, and %d bytes wait for it", m.out.queue)
	}
}

// Links that are refused because there is no space for them take space until the peer has
// answered, with names as long as it likes: there are few of them, or the connection ends.
func TestLinksWithoutMemoryAreFew(t *testing.T) {
	const limit = 4 << 20
	account := budget.New(1 << 30).Child(limit)
	m := NewMachine(new(nullApp), Config{Account: account}, time.Unix(0, 0))
	m.Feed(time.Unix(0, 0), slicesOf(opening(), encode(0, 0, &frame.Begin{IncomingWindow: 5, HandleMax: 1023}, nil)))
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		name := fmt.Sprint(n, strings.Repeat("x", 50_000))
		err = m.Feed(time.Unix(0, 0), encode(0, 0, &frame.Attach{Name: name, Handle: uint32(n), Target: &frame.Target{Address: "q"}}, nil))
		m.Take()
	}
	if used, most := account.Used(), int64(limit+(limits.RefusedLinks+8)*64<<10); used > most {
		t.Errorf("%d bytes are charged after %d links, where %d may be", used, n, limit)
	}
	if e, ok := errors.AsType[*Error](err); !ok || e.Condition != CondResourceLimitExceeded {
		t.Errorf("after %d links: %v", n, err)
	}
	m.Release()
	// Who answers may be refused without limit.
	m = NewMachine(new(nullApp), Config{Account: account}, time.Unix(0, 0))
	m.Feed(time.Unix(0, 0), slicesOf(opening(), encode(0, 0, &frame.Begin{IncomingWindow: 5, HandleMax: 1023}, nil)))
	m.Take()
	account.Charge(limit)
	for range 5 * limits.RefusedLinks {
		if err := m.Feed(time.Unix(0, 0), slicesOf(attachOf(3, frame.Attach{Target: &frame.Target{Address: "q"}}), encode(0, 0, &frame.Detach{Handle: 3, Closed: true}, nil))); err != nil {
			t.Fatal(err)
		}
		m.Take()
	}
	account.Release(limit)
	m.Release()
	if account.Used() != 0 {
		t.Errorf("%d bytes are charged after the end", account.Used())
	}
}

// Links that got nothing because the account was used up go on when it is not any more,
// also if memory is still short, and nothing else happens.
func TestLinksGoOnWhileMemoryIsShort(t *testing.T) {
	const limit = 1 << 20
	app := &nullApp{body: make([]byte, 100)}
	m := NewMachine(app, Config{Account: budget.New(limit)}, time.Unix(0, 0))
	m.Feed(time.Unix(0, 0), slicesOf(opening(), encode(0, 0, &frame.Begin{IncomingWindow: 100, HandleMax: 9}, nil),
		encode(0, 0, &frame.Attach{Name: "l", Role: frame.Receiver, Source: &frame.Source{Address: "q"}}, nil)))
	m.Take()
	m.Advance(time.Unix(0, 0))
	m.mem.counter.Add(limit)
	m.measure()
	m.Feed(time.Unix(0, 0), encode(0, 0, &frame.Flow{HasNextIncomingID: true, IncomingWindow: 100, HasHandle: true,
		HasLinkCredit: true, LinkCredit: 1, HasDeliveryCount: true}, nil))
	if n := m.session(0).nextOut; n != 0 {
		t.Fatalf("%d transfers leave without memory", n)
	}
	m.mem.counter.Release(limit / 8) // the peer settled something, and waits for no answer
	m.Advance(time.Unix(0, 0))
	if n := m.session(0).nextOut; n != 1 || !m.mem.short {
		t.Errorf("%d transfers have left, memory is short: %v", n, m.mem.short)
	}
}

// A link with a name or an address that is too long is refused: it would be kept as long
// as the link, and shown in lists.
func TestLongNamesOfLinksAreRefused(t *testing.T) {
	long := func(n int) string { return strings.Repeat("<", n) }
	for _, c := range []struct {
		what           string
		name           string
		source, target string
		attached       bool
	}{
		{"all as long as they may be", long(limits.LinkName), long(limits.LinkAddress), long(limits.LinkAddress), true},
		{"a name", long(limits.LinkName + 1), "q", "here", false},
		{"a source", "link", long(limits.LinkAddress + 1), "here", false},
		{"a target", "link", "q", long(limits.LinkAddress + 1), false},
	} {
		m := NewMachine(new(nullApp), Config{}, time.Unix(0, 0))
		err := m.Feed(time.Unix(0, 0), slicesOf(opening(), encode(0, 0, &frame.Begin{HandleMax: 9}, nil),
			encode(0, 0, &frame.Attach{Name: c.name, Role: frame.Receiver, Source: &frame.Source{Address: c.source}, Target: &frame.Target{Address: c.target}}, nil)))
		if err != nil {
			t.Fatalf("%s: the connection ends: %v", c.what, err)
		}
		if got := m.session(0).links.get(0).Attached(); got != c.attached {
			t.Errorf("%s: attached is %v, want %v", c.what, got, c.attached)
		}
		if out := string(m.Take()); strings.Contains(out, CondInvalidField) == c.attached {
			t.Errorf("%s: the peer is told %q", c.what, out[max(0, len(out)-200):])
		}
	}
}

// slowApp settles nothing: it takes its time to answer dispositions.
type slowApp struct{ nullApp }

func (*slowApp) Disposition(*Link, *Outcome) {}

// A peer that names the same deliveries again and again makes the broker look at all of
// them each time. It is let go; one that settles each delivery after it named it is not.
func TestRepeatedDispositionsEndTheConnection(t *testing.T) {
	const deliveries, rounds = 2000, 4000
	for _, honest := range []bool{false, true} {
		app := &slowApp{nullApp{body: []byte("x")}}
		m := NewMachine(app, Config{Account: budget.New(1 << 30)}, time.Unix(0, 0))
		feed := func(bs ...[]byte) error {
			err := m.Feed(time.Unix(0, 0), slicesOf(bs...))
			m.Take()
			return err
		}
		grant := func(count uint32) []byte {
			return encode(0, 0, &frame.Flow{HasNextIncomingID: true, NextIncomingID: count, IncomingWindow: 1 << 20,
				HasHandle: true, HasLinkCredit: true, LinkCredit: deliveries, HasDeliveryCount: true, DeliveryCount: count}, nil)
		}
		about := func(first uint32, settled bool) []byte {
			return encode(0, 0, &frame.Disposition{Role: frame.Receiver, First: first, Last: first + deliveries - 1, Settled: settled, State: frame.Accepted()}, nil)
		}
		err := feed(opening(), encode(0, 0, &frame.Begin{HandleMax: 9, IncomingWindow: 1 << 20}, nil),
			encode(0, 0, &frame.Attach{Name: "r", Role: frame.Receiver, Source: &frame.Source{Address: "q"}}, nil), grant(0))
		sent := uint32(0)
		for n := 0; n < rounds && err == nil; n++ {
			if honest && n == rounds/10 {
				break // it is slower
			}
			if err = feed(about(sent, false)); honest && err == nil {
				err = feed(about(sent, true), grant(sent+deliveries))
				sent += deliveries
			}
		}
		if honest && err != nil {
			t.Errorf("a peer that names each delivery twice is let go: %v", err)
		}
		if e, ok := errors.AsType[*Error](err); !honest && (!ok || e.Condition != CondResourceLimitExceeded) {
			t.Errorf("a peer that names %d deliveries %d times goes on: %v", deliveries, rounds, err)
		}
	}
}

// The deliveries that the connections of a key do not settle take no more than there is for the
// key, however much credit they grant, and deliveries go on when a peer settles some.
func TestUnsettledDeliveriesKeepToTheMemoryOfTheKey(t *testing.T) {
	const limit = 8 << 20
	at := time.Unix(0, 0)
	root := budget.New(2 * limit)
	key := root.Child(limit)
	credit := func(m *Machine) {
		next := m.session(0).nextOut
		if err := m.Feed(at, encode(0, 0, &frame.Flow{HasNextIncomingID: true, NextIncomingID: next, IncomingWindow: math.MaxInt32, HasHandle: true,
			HasLinkCredit: true, LinkCredit: 2000, HasDeliveryCount: true, DeliveryCount: m.session(0).links.get(0).count}, nil)); err != nil {
			t.Fatal(err)
		}
		for len(m.Take()) > 0 {
			m.Advance(at)
		}
	}
	var ms []*Machine
	for range 4 {
		m := NewMachine(&nullApp{body: []byte("x")}, Config{Account: key.Child(limit / 2)}, at)
		m.Feed(at, slicesOf(opening(), encode(0, 0, &frame.Begin{IncomingWindow: math.MaxInt32, HandleMax: 9}, nil),
			encode(0, 0, &frame.Attach{Name: "l", Role: frame.Receiver, Source: &frame.Source{Address: "q"}}, nil)))
		m.Take()
		ms = append(ms, m)
	}
	for range 60 {
		for _, m := range ms {
			credit(m)
		}
	}
	if used := key.Used(); used > limit || used < limit/2 {
		t.Errorf("%d bytes are charged to a key that may have %d", used, limit)
	}
	m := ms[0]
	before := m.session(0).nextOut
	if before < 1000 {
		t.Errorf("only %d deliveries have left", before)
	}
	credit(m)
	if n := m.session(0).nextOut; n != before {
		t.Errorf("%d deliveries leave without memory", n-before)
	}
	if err := m.Feed(at, encode(0, 0, &frame.Disposition{Role: frame.Receiver, Last: before / 2, Settled: true, State: frame.Accepted()}, nil)); err != nil {
		t.Fatal(err)
	}
	for len(m.Take()) > 0 {
		m.Advance(at)
	}
	if n := m.session(0).nextOut; n == before {
		t.Error("no delivery leaves when a half is settled")
	}
	for _, m := range ms {
		m.Release()
	}
	if used := key.Used(); used != 0 {
		t.Errorf("%d bytes are charged after the end", used)
	}
}
