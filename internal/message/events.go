// SPDX-License-Identifier: Apache-2.0

package message

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/limits"
)

// Forms of a stored batch of events: its first byte. They are on disk and never change.
const (
	formSingle = 1 // one message follows
	formBatch  = 2 // an envelope of FormatBatch follows
)

// StoredOverhead is how many bytes a batch has more when it is stored than when it came.
const StoredOverhead = 1

// ErrFormat says that a message format is not known.
var ErrFormat = errors.New("message: unknown message format")

// Arrival is what a hub has to know about the events of a transfer.
type Arrival struct {
	Count int
	// Key is the partition key: that of the envelope, else that of the first event that
	// has one. It shares the bytes of the transfer.
	Key    string
	HasKey bool
}

// AppendEvents checks what a client sends to a hub, one event or a batch of them, and
// appends it as it is stored: as it came, behind a byte that tells the two apart. Every
// event is as well formed as Parse wants it, and within the limits of CheckLimits. There
// is no limit to their number but the size of the batch.
//
// Descriptors in other forms are corrected, as by Parse; then the batch is written anew.
func AppendEvents(dst []byte, f Format, raw []byte) (stored []byte, a Arrival, err error) {
	if len(raw) > maxSize {
		return nil, Arrival{}, ErrSize
	}
	switch f {
	case FormatAMQP:
		return appendSingle(dst, raw)
	case FormatBatch:
		return appendEnvelope(dst, raw)
	}
	return nil, Arrival{}, fmt.Errorf("%w: 0x%x", ErrFormat, uint32(f))
}

func appendSingle(dst, raw []byte) (stored []byte, a Arrival, err error) {
	var key partitionKey
	if !key.check(raw) {
		m, err := Parse(raw)
		if err != nil {
			return nil, Arrival{}, err
		}
		if key, err = checkEvent(m); err != nil {
			return nil, Arrival{}, err
		}
		raw = m.raw
	}
	a = Arrival{Count: 1, Key: key.text, HasKey: key.found}
	return append(append(dst, formSingle), raw...), a, nil
}

// appendEnvelope is AppendEvents for a batch. Events in the usual form cost no
// allocation.
func appendEnvelope(dst, raw []byte) (stored []byte, a Arrival, err error) {
	var key partitionKey
	at, ok := key.checkHead(raw)
	if !ok {
		return appendRewritten(dst, raw)
	}
	for at < len(raw) {
		event, n := dataSection(raw[at:])
		if n == 0 {
			return appendRewritten(dst, raw) // perhaps a footer
		}
		var own partitionKey
		if !own.check(event) {
			m := Message{raw: event}
			err := m.scan(false)
			switch {
			case errors.Is(err, errSpelling):
				return appendRewritten(dst, raw)
			case err == nil:
				own, err = checkEvent(&m)
			}
			if err != nil {
				return nil, Arrival{}, fmt.Errorf("event %d of batch: %w", a.Count, err)
			}
		}
		if own.found && !key.found {
			key = own
		}
		at += n
		a.Count++
	}
	if a.Count == 0 {
		return nil, Arrival{}, ErrBatch
	}
	a.Key, a.HasKey = key.text, key.found
	return append(append(dst, formBatch), raw...), a, nil
}

// appendRewritten is AppendEvents for a batch that is not in the usual form. What is
// stored is in that form.
func appendRewritten(dst, raw []byte) (stored []byte, a Arrival, err error) {
	envelope, err := Parse(raw)
	if err != nil {
		return nil, Arrival{}, fmt.Errorf("envelope: %w", err)
	}
	key, err := checkEvent(envelope)
	if err != nil {
		return nil, Arrival{}, fmt.Errorf("envelope: %w", err)
	}
	stored = append(dst, formBatch)
	stored = append(stored, envelope.raw[:envelope.end[sectionApplication]]...)
	for data := range envelope.Data() {
		m, err := Parse(data)
		var own partitionKey
		if err == nil {
			own, err = checkEvent(m)
		}
		if err != nil {
			return nil, Arrival{}, fmt.Errorf("event %d of batch: %w", a.Count, err)
		}
		if own.found && !key.found {
			key = own
		}
		stored = codec.AppendBinary(codec.AppendDescriptor(stored, codeData), m.raw)
		a.Count++
	}
	if a.Count == 0 {
		return nil, Arrival{}, ErrBatch
	}
	a.Key, a.HasKey = key.text, key.found
	return stored, a, nil
}

// checkEvent checks the limits of an event and returns its partition key.
func checkEvent(m *Message) (key partitionKey, err error) {
	if err := m.CheckLimits(); err != nil {
		return key, err
	}
	v, _ := m.Annotation(AnnotationPartitionKey)
	key.text, key.found = v.Str()
	if !key.found && !v.IsNull() {
		return key, fmt.Errorf("%w: the annotation %s is %v", ErrField, AnnotationPartitionKey, v.Kind())
	}
	return key, nil
}

// partitionKey is the partition key of an event or envelope. Its methods check messages
// in the forms that nearly all clients write, in a small part of the time that Parse
// takes. What they refuse may be in order: then Parse decides.
type partitionKey struct {
	text  string
	found bool
}

// check reports whether raw is a whole message that Parse and checkEvent accept as it is.
func (k *partitionKey) check(raw []byte) bool {
	at, ok := k.checkHead(raw)
	if !ok || at == len(raw) {
		return ok
	}
	if _, n := dataSection(raw[at:]); n > 0 {
		at += n
	} else if raw[at+2] == codeValue {
		_, n := codec.Plain(raw[at+descriptorLen:])
		if n == 0 {
			return false
		}
		at += descriptorLen + n
	}
	return at == len(raw)
}

// checkHead checks the sections before the body and returns where they end. What follows
// is nothing, or the descriptor of another section.
func (k *partitionKey) checkHead(raw []byte) (at int, ok bool) {
	for last := byte(0); at < len(raw); {
		if len(raw)-at <= descriptorLen || raw[at] != 0x00 || raw[at+1] != 0x53 {
			return at, false
		}
		code, b, n := raw[at+2], raw[at+descriptorLen:], 0
		if code <= last {
			return at, false
		}
		switch last = code; code {
		case codeHeader:
			n = checkList(b, headerFields[:])
		case codeDelivery:
			n = checkPairs(b, symbolKeys, limits.Annotations)
		case codeAnnotations:
			n = k.checkAnnotations(b)
		case codeProperties:
			n = checkList(b, propertyFields[:])
		case codeApplication:
			n = checkPairs(b, stringKeys, limits.Property)
		default:
			return at, code >= codeData && code <= codeFooter
		}
		if n == 0 {
			return at, false
		}
		at += descriptorLen + n
	}
	return at, true
}

// dataSection returns the content of the data section that b begins with, and its
// length; 0 if b begins with something else.
func dataSection(b []byte) (data []byte, n int) {
	if len(b) < descriptorLen+2 || b[0] != 0x00 || b[1] != 0x53 || b[2] != codeData {
		return nil, 0
	}
	switch b = b[descriptorLen:]; {
	case b[0] == 0xa0 && int(b[1]) <= len(b)-2:
		n = 2 + int(b[1])
		return b[2:n:n], descriptorLen + n
	case b[0] == 0xb0 && len(b) >= 5:
		if size := binary.BigEndian.Uint32(b[1:]); uint64(size) <= uint64(len(b)-5) {
			n = 5 + int(size)
			return b[5:n:n], descriptorLen + n
		}
	}
	return nil, 0
}

// compound returns the values in the list or map that b begins with, their number, and
// how long it is; 0 if b begins with something else. short is the constructor with sizes
// of one byte.
func compound(b []byte, short byte) (in []byte, count, n int) {
	switch {
	case len(b) >= 3 && b[0] == short && int(b[1]) <= len(b)-2 && b[1] > 0:
		n = 2 + int(b[1])
		return b[3:n], int(b[2]), n
	case len(b) >= 9 && b[0] == short+0x10:
		size := binary.BigEndian.Uint32(b[1:])
		if size < 4 || uint64(size) > uint64(len(b)-5) {
			return nil, 0, 0
		}
		n = 5 + int(size)
		in = b[9:n]
		if c := binary.BigEndian.Uint32(b[5:]); uint64(c) <= uint64(len(in)) {
			return in, int(c), n
		}
	}
	return nil, 0, 0
}

// checkList returns the length of a list of fields of the types that are allowed, all of
// them short; 0 if it is not such a list.
func checkList(b []byte, allowed []kinds) (n int) {
	if len(b) > 0 && b[0] == 0x45 {
		return 1
	}
	in, count, n := compound(b, 0xc0)
	if n == 0 || count > len(allowed) {
		return 0
	}
	for _, may := range allowed[:count] {
		k, size := codec.Plain(in)
		if size == 0 || size > limits.Name || !may.has(k) {
			return 0
		}
		in = in[size:]
	}
	if len(in) > 0 {
		return 0
	}
	return n
}

// checkPairs returns the length of a map of up to most bytes, whose keys are of the types
// that are allowed and whose values are plain; 0 if it is not such a map.
func checkPairs(b []byte, keys kinds, most int) (n int) {
	in, count, n := compound(b, 0xc1)
	if n == 0 || n > most-descriptorLen || count%2 != 0 {
		return 0
	}
	for range count / 2 {
		k, size := codec.Plain(in)
		if size == 0 || !keys.has(k) {
			return 0
		}
		in = in[size:]
		if _, size = codec.Plain(in); size == 0 {
			return 0
		}
		in = in[size:]
	}
	if len(in) > 0 {
		return 0
	}
	return n
}

// keyName is how a partition key's name is encoded by all who do it properly.
const keyName = "\xa3\x13" + AnnotationPartitionKey

// checkAnnotations is checkPairs for message annotations: it finds the partition key.
func (k *partitionKey) checkAnnotations(b []byte) (n int) {
	in, count, n := compound(b, 0xc1)
	if n == 0 || n > limits.Annotations-descriptorLen || count%2 != 0 {
		return 0
	}
	for range count / 2 {
		kind, size := codec.Plain(in)
		if size == 0 || !symbolKeys.has(kind) {
			return 0
		}
		name := in[:size]
		in = in[size:]
		if kind, size = codec.Plain(in); size == 0 {
			return 0
		}
		value := in[:size]
		in = in[size:]
		if len(name) < len(keyName) || string(name[len(name)-len("partition-key"):]) != "partition-key" {
			continue
		}
		// The keys of both kinds, and others whose names end so.
		if string(name) != keyName || kind != codec.KindString || value[0] != 0xa1 || size > limits.Name || k.found {
			return 0
		}
		r := codec.NewReader(value)
		k.text, k.found = r.Value().Str()
	}
	if len(in) > 0 {
		return 0
	}
	return n
}
