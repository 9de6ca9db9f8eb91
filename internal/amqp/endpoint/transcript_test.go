// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/script"
)

// TestTranscripts plays testdata/*.txt: a peer's frames and the App's decisions
// above the dashes; calls of the App and, marked with >, frames for the peer
// below.
func TestTranscripts(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(t *testing.T) func(script.Command) string {
		p := &player{t: t, links: map[string]*Link{}, now: time.Unix(0, 0)}
		p.m = NewMachine(p, Config{IncomingWindow: 8, HandleMax: 255, MaxLinks: 6, MaxPartial: 3000}, p.now)
		return p.run
	})
}

// player is an App that tells what it is called with and does what it is told.
type player struct {
	t     *testing.T
	m     *Machine
	now   time.Time
	log   strings.Builder
	links map[string]*Link // by name and our role
}

func (p *player) say(format string, args ...any) { fmt.Fprintf(&p.log, format+"\n", args...) }

func key(l *Link) string { return fmt.Sprintf("%s/%v", l.Name(), l.Role()) }

func (p *player) Mechanisms() []string { return []string{"ANONYMOUS", "PLAIN"} }

func (p *player) Login(mechanism string, response []byte) error {
	p.say("login %s %q", mechanism, response)
	if string(response) == "\x00bad\x00bad" {
		return errors.New("wrong password")
	}
	return nil
}

func (p *player) Opened(o *frame.Open) error {
	p.say("opened %s", o.ContainerID)
	if o.Hostname == "elsewhere" {
		return Errorf(CondNotFound, "no such host")
	}
	return nil
}

// Attach decides by address: "later" waits, "missing" is refused.
func (p *player) Attach(l *Link) {
	p.say("attach %s %q", key(l), l.Address())
	p.links[key(l)] = l
	switch {
	case l.Remote().Coordinator != nil:
		l.Refuse(Errorf(CondNotImplemented, "no transactions"))
	case l.Address() == "missing":
		l.Refuse(Errorf(CondNotFound, "no queue missing"))
	case l.Address() == "broken":
		l.Refuse(errors.New("open /secret/file: no such file"))
	case l.Address() != "later":
		l.Accept(Accept{Credit: 4, MaxMessageSize: 2000})
	}
}

func (p *player) Reserve(*Link, Arriving) bool { return true }

func (p *player) Transfer(l *Link, in *Incoming) {
	body := string(in.Payload)
	if len(body) > 40 {
		body = fmt.Sprintf("%d bytes", len(body))
	}
	p.say("transfer %s %d tag=%s settled=%v %s", key(l), in.ID, in.Tag, in.Settled, body)
}

func (p *player) Credit(l *Link) {
	p.say("credit %s %d draining=%v", key(l), l.Credit(), l.Draining())
}

func (p *player) Disposition(l *Link, o *Outcome) {
	var ids []uint32
	for _, d := range o.Deliveries {
		ids = append(ids, d.ID)
	}
	p.say("disposition %s %v settled=%v %s", key(l), ids, o.Settled, printState(&o.State))
}

func (p *player) Detached(l *Link, err error) { p.say("detached %s: %v", key(l), err) }

func (p *player) Closed(err error) { p.say("closed: %v", err) }

// run plays one command and returns what came of it.
func (p *player) run(c script.Command) string {
	p.log.Reset()
	var err error
	switch c.Name {
	case "wait":
		p.now = p.now.Add(c.Duration("for", 0))
		err = p.m.Tick(p.now)
	case "raw":
		b, bad := hex.DecodeString(strings.Join(c.Words, ""))
		if bad != nil {
			c.T.Fatal(bad)
		}
		err = p.m.Feed(p.now, b)
	case "app":
		p.app(c)
		err = p.m.Advance(p.now)
	case "let-go": // as Conn.stop does
		map[string]func(){"credit": p.m.stopCredit, "answer": p.m.stopReading, "detach": p.m.detachAll}[c.Word(0)]()
		err = p.m.Feed(p.now, nil)
		p.say("idle %v", p.m.idle())
	case "stop":
		p.m.Close(Errorf(CondConnectionForced, "stopping"))
	default:
		err = p.feed(c)
	}
	for b := p.m.Take(); len(b) > 0; b = p.m.Take() {
		p.log.WriteString(printFrames(p.t, b))
	}
	if more := p.m.Advance(p.now); err == nil {
		err = more
	}
	if err != nil {
		p.say("end: %v", err)
	}
	return p.log.String()
}

// feed sends what the peer says, a byte at a time, because the machine must not
// care.
func (p *player) feed(c script.Command) error {
	var err error
	for _, b := range peerFrame(c) {
		err = p.m.Feed(p.now, []byte{b})
	}
	return err
}

// app does what a personality would.
func (p *player) app(c script.Command) {
	l := p.links[c.Text("link", "")]
	if l == nil {
		c.T.Fatalf("line %d: no link %q", c.Line, c.Text("link", ""))
	}
	switch c.Word(0) {
	case "accept":
		l.Accept(Accept{Credit: uint32(c.Int("credit", 0))})
	case "refuse":
		l.Refuse(Errorf(CondUnauthorizedAccess, "no"))
	case "detach":
		l.Detach(Errorf(CondDetachForced, "enough"))
	case "window":
		l.SetWindow(uint32(c.Int("credit", 0)))
	case "grant":
		l.Grant(uint32(c.Int("credit", 0)))
	case "settle":
		for id := c.Int("first", 0); id <= c.Int("last", c.Int("first", 0)); id++ {
			l.Settle(Delivery{ID: uint32(id)}, state(c))
		}
	case "settle-out":
		for id := c.Int("first", 0); id <= c.Int("last", c.Int("first", 0)); id++ {
			l.SettleOut(uint32(id), state(c))
		}
	case "send":
		for i := range c.Int("times", 1) {
			o := Outgoing{Tag: fmt.Appendf(nil, "t%d", i), Payload: []byte(c.Text("payload", "x"))}
			if size := c.Int("size", 0); size > 0 {
				o.Payload = make([]byte, size)
			}
			o.Settled = c.Text("settled", "") == "true"
			if err := l.Send(o); err != nil {
				p.say("send %d: %v", i, err)
			}
		}
	case "drained":
		l.DrainDone()
	default:
		c.T.Fatalf("line %d: unknown deed %q", c.Line, c.Word(0))
	}
}

func state(c script.Command) frame.State {
	switch c.Text("state", "accepted") {
	case "released":
		return frame.Released()
	case "rejected":
		return frame.Rejected(Errorf("com.example:full", "queue is full"))
	case "modified":
		return frame.State{Kind: frame.StateModified, UndeliverableHere: true}
	}
	return frame.Accepted()
}
