// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/limits"
)

// errMissing says that a field which must be there is not.
var errMissing = errors.New("frame: mandatory field is missing")

// errSymbols says that a field has more than MaxSymbols symbols.
var errSymbols = errors.New("frame: too many symbols in a field")

// MaxSymbols is how many symbols a field of an open or attach may have. Peers send a
// handful; a decoded symbol takes more memory than its bytes.
const MaxSymbols = limits.Symbols

// writer writes all fields of a composite in order. Trailing ones that are absent
// are written as null: the AMQP of the SDKs for Python finds fields by their place,
// the payload behind the last of a transfer included.
type writer struct {
	dst []byte
	at  codec.Mark
	n   int // fields written
}

func compose(dst []byte, code Code) writer {
	dst = codec.AppendDescriptor(dst, uint64(code))
	w := writer{}
	w.dst, w.at = codec.BeginList(dst)
	return w
}

func (w *writer) close() []byte {
	return codec.EndList(w.dst, w.at, w.n)
}

// absent writes a field as null.
func (w *writer) absent() {
	w.dst = codec.AppendNull(w.dst)
	w.n++
}

// present continues with dst, to which the caller appended a field.
func (w *writer) present(dst []byte) {
	w.dst = dst
	w.n++
}

func (w *writer) uint(v uint32)  { w.present(codec.AppendUint(w.dst, v)) }
func (w *writer) ulong(v uint64) { w.present(codec.AppendUlong(w.dst, v)) }
func (w *writer) bool(v bool)    { w.present(codec.AppendBool(w.dst, v)) }

// uintUnless writes v unless it is the default of its field.
func (w *writer) uintUnless(v, unset uint32) {
	if v == unset {
		w.absent()
		return
	}
	w.uint(v)
}

// uintIf writes v if it is set.
func (w *writer) uintIf(set bool, v uint32) {
	if !set {
		w.absent()
		return
	}
	w.uint(v)
}

// flag writes a boolean whose default is false.
func (w *writer) flag(v bool) {
	if !v {
		w.absent()
		return
	}
	w.bool(true)
}

func (w *writer) string(v string) {
	if v == "" {
		w.absent()
		return
	}
	w.present(codec.AppendString(w.dst, v))
}

func (w *writer) symbol(v string) {
	if v == "" {
		w.absent()
		return
	}
	w.present(codec.AppendSymbol(w.dst, v))
}

// raw writes an encoded value as it is.
func (w *writer) raw(v []byte) {
	if len(v) == 0 {
		w.absent()
		return
	}
	w.present(append(w.dst, v...))
}

func (w *writer) symbols(v []string) {
	if len(v) == 0 {
		w.absent()
		return
	}
	w.present(codec.AppendSymbolArray(w.dst, v))
}

func (w *writer) failure(e *Error) {
	if e == nil {
		w.absent()
		return
	}
	w.present(e.Append(w.dst))
}

// state writes a state; one we do not know cannot be written.
func (w *writer) state(s *State) {
	if s == nil || s.Kind == StateNone || s.Kind == StateUnknown {
		w.absent()
		return
	}
	w.present(s.Append(w.dst))
}

// mandatory makes r fail when its next field is missing.
func mandatory(r *codec.Reader, name string) {
	if r.Null() {
		r.Fail(fmt.Errorf("%w: %s", errMissing, name))
	}
}

// uintOr reads a uint that has a default.
func uintOr(r *codec.Reader, unset uint32) uint32 {
	if r.Null() {
		return unset
	}
	return r.Uint()
}

// rawField reads a field as it is encoded, after a check that all of it can be
// decoded later; nil when absent.
func rawField(r *codec.Reader) []byte {
	if r.Null() {
		return nil
	}
	look := *r
	if look.Check(); look.Err() != nil {
		r.Fail(look.Err())
		return nil
	}
	return r.Raw()
}

// rawMap is rawField for a field that must be a map.
func rawMap(r *codec.Reader) []byte {
	look := *r
	if look.Map(); look.Err() != nil {
		r.Fail(look.Err())
		return nil
	}
	return rawField(r)
}

// symbols reads a field of several symbols; nil when absent.
func symbols(r *codec.Reader) []string {
	many := r.Multiple()
	if !many.More() {
		r.Fail(many.Err())
		return nil
	}
	if many.Left() > MaxSymbols {
		r.Fail(fmt.Errorf("%w: %d, at most %d", errSymbols, many.Left(), MaxSymbols))
		return nil
	}
	list := make([]string, 0, many.Left())
	for many.More() {
		list = append(list, many.Str())
	}
	if many.Err() != nil {
		r.Fail(many.Err())
		return nil
	}
	return list
}

// failure reads a field that is an error; nil when absent.
func failure(r *codec.Reader) *Error {
	if r.Null() {
		return nil
	}
	code, fields := r.Composite()
	if r.Err() == nil && Code(code) != CodeError {
		r.Fail(fmt.Errorf("frame: want an error, found descriptor 0x%02x", code))
	}
	e := new(Error)
	e.Decode(&fields)
	r.Fail(fields.Err())
	return e
}

// lookup returns the value of key in an encoded map, such as the properties of
// a link.
func lookup(encoded []byte, key string) (codec.Value, bool) {
	if len(encoded) == 0 {
		return codec.Value{}, false
	}
	v, err := codec.ParseValue(encoded)
	if err != nil {
		return codec.Value{}, false
	}
	return v.Lookup(key)
}
