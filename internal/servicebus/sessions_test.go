// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
)

const sessionFilterCode = 0x137000000C

// inSession asks for a session as the Go SDK does; nil is the next free one.
func inSession(id any, timeout time.Duration) *amqp.ReceiverOptions {
	o := peekLock()
	o.Filters = []amqp.LinkFilter{amqp.NewLinkFilter(sessionFilter, sessionFilterCode, id)}
	if timeout > 0 {
		o.Properties = map[string]any{propTimeout: uint32(timeout.Milliseconds())}
	}
	return o
}

func (p *peerOf) sendInSession(id, text string) {
	p.t.Helper()
	p.send("sessions", &amqp.Message{Value: text, Properties: &amqp.MessageProperties{GroupID: &id}})
}

func TestNamedSession(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.sendInSession("a", "one")
	p.sendInSession("b", "other")
	p.sendInSession("a", "two")
	r := p.receiver("sessions", inSession("a", 0))
	if got := r.LinkSourceFilterValue(sessionFilter); got != "a" {
		t.Errorf("granted session %v, want a", got)
	}
	checkLockedUntil(t, r)
	for _, want := range []string{"one", "two"} {
		m := p.next(r)
		if m.Value != want {
			t.Fatalf("got %v, want %v", m.Value, want)
		}
		if err := r.AcceptMessage(p.ctx(), m); err != nil {
			t.Fatal(err)
		}
	}

	_, err := p.session().NewReceiver(p.ctx(), "sessions", inSession("a", 0))
	e := wantCondition(t, "the same session", err, "com.microsoft:session-cannot-be-locked")
	if want := "The requested session 'a' cannot be accepted. It may be locked by another receiver."; e.Description != want {
		t.Errorf("text %q, want %q", e.Description, want)
	}
	if err := r.Close(p.ctx()); err != nil {
		t.Fatal(err)
	}
	p.receiver("sessions", inSession("a", 0)) // free again
}

// checkLockedUntil checks that the link tells when its session lock ends.
func checkLockedUntil(t *testing.T, r *amqp.Receiver) {
	t.Helper()
	until, ok := r.Properties()[propLockedUntil].(int64)
	if !ok || until < ticks(time.Now().Add(30*time.Second)) {
		t.Errorf("locked until %T %[1]v, want ticks of a time to come", r.Properties()[propLockedUntil])
	}
}

func TestNextSessionIsWaitedFor(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	got := make(chan *amqp.Receiver, 1)
	s := p.session()
	go func() { // ends with the attach, which the test waits for
		r, err := s.NewReceiver(p.ctx(), "sessions", inSession(nil, time.Minute))
		if err != nil {
			t.Errorf("attach: %v", err)
		}
		got <- r
	}()
	p.sendInSession("late", "x") // on the same connection, which must not be held up
	r := <-got
	if id := r.LinkSourceFilterValue(sessionFilter); id != "late" {
		t.Errorf("granted %v, want late", id)
	}
	checkLockedUntil(t, r)
}

func TestNextSessionTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		p := b.login(t, rootRule)
		before := time.Now()
		_, err := p.session().NewReceiver(p.ctx(), "sessions", inSession(nil, 5*time.Second))
		wantCondition(t, "no session", err, "com.microsoft:timeout")
		if waited, want := time.Since(before), 5*time.Second-answerAhead; waited != want {
			t.Errorf("waited %v, want %v: the 5s asked for, less what the answer may need", waited, want)
		}
	})
}

// A client that gives up waiting must not be granted a session nobody reads.
func TestGivenUpWaitTakesNoSession(t *testing.T) {
	b := start(t)
	waiting := b.login(t, rootRule)
	s := waiting.session()
	attach := make(chan error, 1)
	go func() { // ends with the session
		_, err := s.NewReceiver(waiting.ctx(), "sessions", inSession(nil, time.Minute))
		attach <- err
	}()
	waiting.Close()
	<-attach
	<-waiting.served
	p := b.login(t, rootRule)
	p.sendInSession("a", "x")
	r := p.receiver("sessions", inSession(nil, time.Minute))
	if m := p.next(r); m.Value != "x" {
		t.Errorf("got %v", m.Value)
	}
}

func TestLostSessionDetaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		p := b.login(t, rootRule)
		p.sendInSession("a", "x")
		r := p.receiver("sessions", inSession("a", 0))
		time.Sleep(2 * time.Minute)
		_, err := r.Receive(p.ctx(), nil)
		wantCondition(t, "after the lock ran out", err, "com.microsoft:session-lock-lost")
	})
}

// The JavaScript SDK sends the filter without a descriptor and wants it back so.
func TestFilterIsMirrored(t *testing.T) {
	tests := []struct {
		name   string
		filter codec.Value
		id     *string
		want   codec.Value
	}{
		{"plain name", codec.String("a"), new("a"), codec.String("a")},
		{"plain empty name", codec.String(""), new(""), codec.String("")},
		{"plain next", codec.Value{}, nil, codec.String("granted")},
		{"described name", codec.Describe(sessionFilterCode, codec.String("a")), new("a"), codec.Describe(sessionFilterCode, codec.String("a"))},
		{"described next", codec.Describe(sessionFilterCode, codec.Value{}), nil, codec.Describe(sessionFilterCode, codec.String("granted"))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			filter := codec.AppendValue(nil, codec.Map(codec.Symbol(sessionFilter), tt.filter, codec.Symbol("other"), codec.String("x")))
			source := &frame.Source{Address: "sessions", Filter: filter}
			w := sessionRequestOf(source)
			granted := "granted"
			if tt.id != nil {
				granted = *tt.id
			}
			switch {
			case !w.asked, (w.id == nil) != (tt.id == nil), w.id != nil && *w.id != *tt.id:
				t.Fatalf("wish %+v, want id %v", w, tt.id)
			}
			got := w.granted(source, granted).Filter
			want := codec.AppendValue(nil, codec.Map(codec.Symbol(sessionFilter), tt.want))
			if string(got) != string(want) {
				t.Errorf("filter % x, want % x", got, want)
			}
		})
	}
}

func TestLockedUntilHasEightBytes(t *testing.T) {
	b := appendLockedUntil(nil, time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC))
	const ticks2026 = 639029198450000006
	want := codec.AppendSymbol(nil, propLockedUntil)
	want = codec.AppendLong8(want, ticks2026)
	if string(b) != string(want) {
		t.Errorf("property % x, want % x", b, want)
	}
}
