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
	first  *Message
}

// inTurn runs work that takes a processor for a moment, when there is one to spare.
// It must not wait for the disk or for the client.
func (c *call) inTurn(work func()) {
	defer c.turns.Wait(c.grant.Account())()
	work()
}

// next returns the next message to show, nil if there is none or the request
// has reached its limit of examined messages. After an error, from is still the
// number of that message.
func (p *peeking) next() (*Message, error) {
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
		shown := err == nil
		class := p.c.Broker.ClassName(p.addr, d.Class)
		p.looked++
		var s Message
		p.c.inTurn(func() {
			if shown = shown && (p.wanted == nil || p.wanted(d, m)); shown {
				s = show(d, m, bodyPreview)
				s.Class = class
			}
		})
		p.from = d.Seq + 1
		*d, p.ds = broker.Delivery{}, p.ds[1:] // a slow client does not keep what it has seen
		if shown {
			p.left--
			return &s, nil
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
	for m, between := p.first, ""; m != nil; between = "," {
		var b []byte
		var err error
		p.c.inTurn(func() { b, err = json.Marshal(m) })
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, between); err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		if size += len(b); size >= limits.PeekJSON {
			break
		}
		if m, err = p.next(); err != nil {
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

// one is a message that is shown with all of its body.
type one struct {
	d     *broker.Delivery
	m     *message.Message
	class string
}

// stream implements streamed. A body of data, which may be large, is written as it is
// encoded; another is JSON of a bounded size.
func (o one) stream(w io.Writer) error {
	body, ok := dataOf(o.m)
	if !ok || len(body) <= bodyPiece {
		s := show(o.d, o.m, o.m.Size())
		s.Class = o.class
		return json.NewEncoder(w).Encode(s)
	}
	s := show(o.d, o.m, 0)
	s.Class = o.class
	s.Body, s.Truncated, s.BodyType = nil, false, BodyBase64
	if utf8.Valid(body) {
		s.BodyType = BodyText
	}
	head, err := json.Marshal(s)
	if err != nil {
		return err
	}
	head = append(head[:len(head)-1], `,"body":"`...)
	if _, err := w.Write(head); err != nil {
		return err
	}
	if s.BodyType == BodyText {
		err = streamText(w, body)
	} else {
		e := base64.NewEncoder(base64.StdEncoding, w)
		_, err = e.Write(body)
		err = errors.Join(err, e.Close())
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "\"}\n")
	return err
}

// bodyPiece is how much of a body is encoded at a time.
const bodyPiece = 64 << 10

// streamText writes the contents of a JSON string, without the quotes.
func streamText(w io.Writer, text []byte) error {
	for len(text) > 0 {
		piece := text
		if len(piece) > bodyPiece {
			piece = cutRune(piece[:bodyPiece])
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
