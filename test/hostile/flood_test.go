// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"bytes"
	"errors"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/message"
)

// flood sends n payloads to an address, each when the one before has its
// outcome, and connects again when it is disconnected. It returns how many were
// accepted, and why the last rejected one was rejected.
func (s *scene) flood(rule access.Rule, addr string, format message.Format, n int, payload func(i int) []byte) (accepted int, last error) {
	s.Helper()
	var p *peer
	handle := uint32(0)
	for i := range n {
		if s.Dead() || s.ctx.Err() != nil {
			return accepted, last
		}
		if p == nil {
			p, handle = s.peer(rule), 0
			if _, err := p.attach(sendTo(handle, addr)); err != nil {
				s.Fatalf("attach to %s as %s: %v", addr, rule.Name, err)
			}
		}
		err := p.transfer(handle, uint32(format), payload(i))
		if err == nil {
			err = p.within(patience).settled()
		}
		switch {
		case err == nil:
			accepted++
			continue
		case refused(err) == "":
			p.nc.Close()
			p = nil
		case p.detached:
			p.detached = false
			handle++
			if _, err := p.attach(sendTo(handle, addr)); err != nil {
				p.nc.Close()
				p = nil
			}
		}
		last = err
	}
	return accepted, last
}

// fill puts n messages into a queue or topic, as one with every right would.
func (s *scene) fill(addr string, n int, draft func(i int) message.Draft) {
	s.Helper()
	accepted, err := s.flood(root, addr, message.FormatAMQP, n, func(i int) []byte {
		d := draft(i)
		return d.Encode(nil)
	})
	if accepted != n {
		s.Fatalf("%d of %d messages were taken by %s: %v", accepted, n, addr, err)
	}
}

// fillSmall puts n small messages into a queue, a hundred at a time.
func (s *scene) fillSmall(addr string, n int) {
	s.Helper()
	const most = 100
	var small []*message.Message
	for range most {
		d := message.Draft{Body: []byte("small")}
		small = append(small, d.Message())
	}
	batches := (n + most - 1) / most
	accepted, err := s.flood(root, addr, message.FormatBatch, batches, func(i int) []byte {
		return message.AppendBatch(nil, small[:min(most, n-i*most)]...)
	})
	if accepted != batches {
		s.Fatalf("%d of %d batches were taken by %s: %v", accepted, batches, addr, err)
	}
}

// locked receives n messages under locks and returns their lock tokens. Delivery ids
// count from zero.
func (p *peer) locked(handle uint32, addr string, n int) (tokens [][16]byte, err error) {
	if _, err := p.attach(receiveFrom(handle, addr)); err != nil {
		return nil, err
	}
	if err := p.credit(handle, uint32(n)); err != nil {
		return nil, err
	}
	for range n {
		payload, err := p.receive()
		if err != nil {
			return tokens, err
		}
		// A symbol, and a uuid behind it.
		_, token, ok := bytes.Cut(payload, []byte(message.AnnotationLockToken+"\x98"))
		if !ok || len(token) < 16 {
			return tokens, errors.New("a locked message has no token")
		}
		tokens = append(tokens, [16]byte(token[:16]))
	}
	return tokens, nil
}

// together runs the same for all numbers below n, so many at a time, and waits for
// all.
func together(n, most int, do func(i int)) {
	next := make(chan int)
	done := make(chan struct{})
	for range most {
		go func() { // ends with next
			for i := range next {
				do(i)
			}
			done <- struct{}{}
		}()
	}
	for i := range n {
		next <- i
	}
	close(next)
	for range most {
		<-done
	}
}

// tooMuch reports an error that says that something is too large or too much.
func tooMuch(err error) bool {
	switch refused(err) {
	case "amqp:resource-limit-exceeded", "amqp:link:message-size-exceeded", "amqp:not-allowed", "amqp:invalid-field",
		"com.microsoft:argument-error", "com.microsoft:server-busy", "amqp:decode-error":
		return true
	}
	return false
}
