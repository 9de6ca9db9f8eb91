// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// streamed is an answer that is written piece by piece: what messages become in JSON
// is never in memory as a whole.
type streamed interface {
	// stream writes the answer. An error is an error of w: the client has
	// disconnected.
	stream(w io.Writer) error
}

// peeking is a peek under way: [Messages] as it is written.
type peeking struct {
	c       *call
	addr    string
	wanted  func(*broker.Delivery, *message.Message) bool // nil takes all
	session *string
	left    int // messages that may be shown
	window  int // messages that are read at a time

	from   queue.SeqNo // the next message to examine; zero at the end
	ds     []broker.Delivery
	looked int
	over   bool // there is nothing at or above from
	first  []byte
}

// inTurn runs work that takes a processor for a moment, when there is one to spare.
// It must not wait for the disk or for the client.
func (c *call) inTurn(work func()) {
	defer c.turns.Wait(c.grant.Account())()
	work()
}

// next returns the JSON of the next message to show, nil if there is none or the request
// has reached its limit of examined messages. After an error, from is still the
// number of that message.
//
// While a slow client is written to, the JSON is all that is in memory, and it is charged. What
// it is made from is there during a turn only.
func (p *peeking) next() ([]byte, error) {
	for p.left > 0 && p.looked < limits.Examined {
		if len(p.ds) == 0 {
			if err := p.c.recheck(); err != nil {
				return nil, err
			}
			ds, err := p.c.Broker.Peek(p.c.Context(), p.addr, p.from, p.window, p.session)
			if err != nil {
				return nil, err
			}
			if p.over = len(ds) == 0; p.over {
				return nil, nil
			}
			p.ds = ds
			for i := range p.ds {
				p.ds[i].Unload() // only one at a time is in memory, however slow the client is
			}
		}
		d := &p.ds[0]
		p.from = d.Seq
		if err := p.c.chargeLargest(d.Size()); err != nil {
			return nil, err
		}
		if err := p.c.Context().Err(); err != nil {
			return nil, err // a filter ends with its client
		}
		m, err := d.Message()
		switch {
		case errors.Is(err, broker.ErrMessageNotFound): // settled meanwhile
		case err != nil:
			return nil, err
		}
		found := err == nil
		class := p.c.Broker.ClassName(p.addr, d.Class)
		p.looked++
		var b []byte
		p.c.inTurn(func() {
			if found && (p.wanted == nil || p.wanted(d, m)) {
				s := show(d, m, bodyPreview)
				s.Class = class
				if b, err = s.encode(); err == nil {
					err = p.c.chargeLargest(int64(len(b)))
				}
			}
		})
		if b != nil && err != nil {
			return nil, err
		}
		p.from = d.Seq + 1
		*d, p.ds = broker.Delivery{}, p.ds[1:] // a slow client does not keep what it has seen
		if b != nil {
			p.left--
			return b, nil
		}
	}
	return nil, nil
}

// stream implements streamed. The answer ends early at an error. The next
// request begins there and returns the error.
func (p *peeking) stream(w io.Writer) error {
	if _, err := io.WriteString(w, `{"messages":[`); err != nil {
		return err
	}
	size := 0
	b := p.first
	p.first = nil
	for between := ""; b != nil; between = "," {
		if _, err := io.WriteString(w, between); err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		if size += len(b); size >= limits.PeekJSON {
			break
		}
		var err error
		if b, err = p.next(); err != nil {
			break
		}
	}
	end := []byte("]}\n")
	if !p.over && p.from > 0 {
		b, err := json.Marshal(struct {
			Next queue.SeqNo `json:"next"`
		}{p.from})
		if err != nil {
			return err
		}
		end = append(append([]byte("],"), b[1:]...), '\n')
	}
	_, err := w.Write(end)
	return err
}

// one is a message that is shown with all of its body: head is written before the body, and
// tail behind it. A body that is not large, or not data, is in head.
type one struct {
	head, body, tail []byte
	text             bool // body is text
}

// newOne describes a message, and charges the JSON of all but a large body, which is written as it
// is encoded. The message is let go.
func newOne(c *call, d *broker.Delivery, m *message.Message, class string) (o one, err error) {
	body, ok := dataOf(m)
	large := ok && len(body) > bodyPiece
	c.inTurn(func() {
		limit := m.Size()
		if large {
			limit = 0
		}
		s := show(d, m, limit)
		s.Class = class
		if large {
			o.body, o.text = body, utf8.Valid(body)
			s.Body, s.Truncated, s.BodyType = nil, false, BodyBase64
			if o.text {
				s.BodyType = BodyText
			}
		}
		if o.head, err = s.encode(); err == nil {
			err = c.charge(int64(len(o.head)))
		}
	})
	o.tail = []byte{'\n'}
	if large {
		o.head, o.tail = append(o.head[:len(o.head)-1], `,"body":"`...), []byte("\"}\n")
	}
	return o, err
}

// stream implements streamed.
func (o one) stream(w io.Writer) error {
	_, err := w.Write(o.head)
	switch {
	case err != nil:
		return err
	case o.text:
		err = streamText(w, o.body)
	case o.body != nil:
		e := base64.NewEncoder(base64.StdEncoding, w)
		_, err = e.Write(o.body)
		err = errors.Join(err, e.Close())
	}
	if err != nil {
		return err
	}
	_, err = w.Write(o.tail)
	return err
}

const (
	// bodyPiece is how large a body is that is encoded as it is written.
	bodyPiece = 64 << 10
	// textPiece is how much of it is encoded at a time. It is up to six times as large in JSON.
	textPiece = 8 << 10
)

// streamText writes the contents of a JSON string, without the quotes.
func streamText(w io.Writer, text []byte) error {
	for len(text) > 0 {
		piece := text
		if len(piece) > textPiece {
			piece = cutRune(piece[:textPiece])
		}
		text = text[len(piece):]
		b, err := json.Marshal(string(piece))
		if err != nil {
			return err
		}
		if _, err := w.Write(b[1 : len(b)-1]); err != nil {
			return err
		}
	}
	return nil
}
