// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

// Errors of Parse. Encoding errors wrap an error of codec.
var (
	// ErrSize says that a message is larger than maxSize.
	ErrSize = errors.New("message: too large")
	// ErrSection says that something other than a message section was found.
	ErrSection = errors.New("message: not a message section")
	// ErrOrder says that a section is repeated or out of order, or that the body
	// mixes kinds.
	ErrOrder = errors.New("message: section out of order")
	// ErrField says that a field or key has a type it must not have, or that there
	// are more fields than the specification defines.
	ErrField = errors.New("message: field of wrong type")
)

// errSpelling says that a descriptor is not written 00 53 xx, or that the
// footer or delivery-annotations are out of order.
var errSpelling = errors.New("message: in another form")

// Parse reads the sections of raw. The Message keeps raw, which must not change
// from then on. Bodies are checked, not decoded.
func Parse(raw []byte) (*Message, error) { return read(raw, false) }

// ParseStored is Parse for a message that is stored already, or that was
// derived from one. It does not apply limits: they are for incoming messages,
// and an earlier version may have accepted more.
func ParseStored(raw []byte) (*Message, error) { return read(raw, true) }

func read(raw []byte, stored bool) (*Message, error) {
	if len(raw) > maxSize {
		return nil, ErrSize
	}
	m := &Message{raw: raw}
	err := m.scan(stored)
	if errors.Is(err, errSpelling) {
		if m.raw, err = respell(raw); err == nil {
			err = m.scan(stored)
		}
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// scan finds where each section ends and checks what is inside.
func (m *Message) scan(stored bool) error {
	var (
		next section // the first one whose end is not known yet
		at   int
		body byte // code of the body sections, 0 before the first
	)
	for at < len(m.raw) {
		b := m.raw[at:]
		if len(b) < descriptorLen || b[0] != 0x00 || b[1] != 0x53 {
			return errSpelling
		}
		code := b[2]
		s, ok := sectionOf(code)
		if !ok {
			return fmt.Errorf("%w: descriptor 0x%02x at byte %d", ErrSection, code, at)
		}
		more := s == sectionBody && next == s+1 && code == body && code != codeValue
		if s == sectionBody && s < next && body == 0 { // all that was before it is the footer
			return errSpelling
		}
		if s == sectionDelivery && s < next && body == 0 && m.end[sectionDelivery] == m.end[sectionHeader] {
			return errSpelling
		}
		if s < next && !more {
			return fmt.Errorf("%w: 0x%02x at byte %d", ErrOrder, code, at)
		}
		r := codec.NewReader(b[descriptorLen:])
		if checkSection(&r, code, stored); r.Err() != nil {
			return fmt.Errorf("message: section 0x%02x at byte %d: %w", code, at, r.Err())
		}
		for ; next < s; next++ {
			m.end[next] = uint32(at)
		}
		at = len(m.raw) - r.Len()
		if s == sectionBody {
			body = code
		}
		if s < sectionFooter {
			m.end[s] = uint32(at)
		}
		next = s + 1
	}
	for ; next < sectionFooter; next++ {
		m.end[next] = uint32(at)
	}
	return nil
}

func sectionOf(code byte) (section, bool) {
	switch {
	case code >= codeHeader && code <= codeData:
		return section(code - codeHeader), true
	case code == codeSequence, code == codeValue:
		return sectionBody, true
	case code == codeFooter:
		return sectionFooter, true
	}
	return 0, false
}

// checkSection steps over the value of a section and records in r what is wrong
// with it.
func checkSection(r *codec.Reader, code byte, stored bool) {
	switch code {
	case codeHeader:
		checkFields(r, headerFields[:])
	case codeProperties:
		checkFields(r, propertyFields[:])
	case codeDelivery, codeAnnotations, codeFooter:
		checkMap(r, symbolKeys, stored)
	case codeApplication:
		checkMap(r, stringKeys, stored)
	case codeData:
		if r.Kind() != codec.KindNull { // the body null of the SDKs for JavaScript
			expect(r, codec.KindBinary)
		}
		r.Skip()
	case codeSequence:
		expect(r, codec.KindList)
		check(r, stored)
	case codeValue:
		check(r, stored)
	}
}

// check steps over the next value and checks everything inside it.
func check(r *codec.Reader, stored bool) {
	if stored {
		r.CheckStored()
		return
	}
	r.Check()
}

// expect records an error if the next value is not of the type want.
func expect(r *codec.Reader, want codec.Kind) {
	if k := r.Kind(); k != want && r.Len() > 0 {
		r.Fail(fmt.Errorf("%w: want %v, found %v", ErrField, want, k))
	}
}

// checkFields checks a list of fields against the types they may have.
func checkFields(r *codec.Reader, allowed []kinds) {
	expect(r, codec.KindList)
	fields := r.List()
	if fields.Left() > len(allowed) {
		r.Fail(fmt.Errorf("%w: %d fields, at most %d exist", ErrField, fields.Left(), len(allowed)))
		return
	}
	for i := 0; fields.More(); i++ {
		if k := fields.Kind(); !allowed[i].has(k) {
			r.Fail(fmt.Errorf("%w: field %d is %v", ErrField, i, k))
			return
		}
		fields.Skip()
	}
	checkEnd(r, &fields)
}

// checkMap checks the types of the keys of a map and the encoding of its values.
func checkMap(r *codec.Reader, keys kinds, stored bool) {
	expect(r, codec.KindMap)
	pairs := r.Map()
	for pairs.More() {
		if k := pairs.Kind(); !keys.has(k) {
			r.Fail(fmt.Errorf("%w: key is %v", ErrField, k))
			return
		}
		pairs.Skip()
		check(&pairs, stored)
	}
	checkEnd(r, &pairs)
}

// checkEnd passes the error of a nested Reader to r. It is also an error if its
// values end before its bytes.
func checkEnd(r, nested *codec.Reader) {
	r.Fail(nested.Err())
	if nested.Len() > 0 {
		r.Fail(codec.ErrCount)
	}
}

// respell returns raw with all descriptors written 00 53 xx, delivery-annotations
// behind the header, and the footer at the end.
func respell(raw []byte) ([]byte, error) {
	out := make([]byte, 0, len(raw))
	var footer []byte
	later := -1 // where the first section begins that comes after delivery-annotations
	delivery, body := false, false
	for r := codec.NewReader(raw); r.Len() > 0; {
		descriptor, value := r.Described()
		if r.Err() != nil {
			return nil, fmt.Errorf("%w: %w", ErrSection, r.Err())
		}
		code := descriptor.Code()
		if code < codeHeader || code > codeFooter {
			return nil, fmt.Errorf("%w: descriptor %v", ErrSection, descriptor)
		}
		if code == codeFooter {
			footer = append(codec.AppendDescriptor(footer, code), value.Raw()...)
			continue
		}
		at := len(out)
		out = append(codec.AppendDescriptor(out, code), value.Raw()...)
		body = body || code >= codeData
		if code == codeDelivery {
			if delivery { // moving many of them one by one is quadratic
				return nil, fmt.Errorf("%w: 0x%02x for the second time", ErrOrder, code)
			}
			delivery = true
		}
		switch {
		case code == codeDelivery && later >= 0 && !body:
			moved := bytes.Clone(out[at:])
			copy(out[later+len(moved):], out[later:at])
			copy(out[later:], moved)
		case code > codeDelivery && later < 0:
			later = at
		}
	}
	return append(out, footer...), nil
}
