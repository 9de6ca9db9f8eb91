// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/triagemq/triagemq/internal/limits"
)

// Quick is how many bytes a text has at most that is decoded in less than a millisecond. What is
// longer takes turns for a processor.
const Quick = 16 << 10

// What things take besides their own size, rounded up from the allocator of Go 1.26.
const (
	// allocation is what the smallest allocation takes.
	allocation = 16
	// growth is how often the elements of a list are there while the list grows: as they
	// were, and in the new array, which has space for as many again.
	growth = 3
	// mapGrowth is the same for a map, whose tables are filled by half.
	mapGrowth = 4
	// mapSize is a map with space for its first eight elements, besides their sizes.
	mapSize, firstElements = 64, 8
	// readCopies is how often the text is there: in the buffer of the decoder, while it
	// grows.
	readCopies = 3
)

// JSON returns how many bytes it takes to decode a text into a value of a type, as package
// json does. A [json.RawMessage] is copied as it is. An error is a limit that the text
// exceeds.
func JSON(text []byte, into reflect.Type) (int64, error) {
	s := scanner{text: text, cost: readCopies * int64(len(text))}
	s.space()
	s.value(into, 1)
	return s.cost, s.err
}

// Elements returns how many elements a list has, 0 for any other text.
func Elements(text []byte) (n int) {
	s := scanner{text: text, uncounted: true}
	if s.space() == '[' {
		s.each('[', func() { s.skip(); n++ })
	}
	return n
}

// scanner reads a JSON text once. It takes the text to be well-formed, and stops where it
// finds that it is not: then at is the end of the text.
type scanner struct {
	text []byte
	at   int
	cost int64
	err  error

	uncounted bool // lists and objects have no limit
}

var (
	rawType  = reflect.TypeFor[json.RawMessage]()
	readJSON = reflect.TypeFor[json.Unmarshaler]()
	readText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// value adds the cost of the next value, for which its container has counted the size of t.
func (s *scanner) value(t reflect.Type, depth int) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
		s.cost += int64(t.Size()) + allocation
	}
	switch kind := t.Kind(); {
	case depth > limits.Depth:
		s.fail("depth of the JSON", limits.Depth+1, limits.Depth)
	case t == rawType:
		s.cost += int64(s.skip()) + allocation
	case reflect.PointerTo(t).Implements(readJSON), reflect.PointerTo(t).Implements(readText):
		s.tree(depth)
	case kind == reflect.Struct && s.next() == '{':
		s.object(t, depth)
	case kind == reflect.Map && s.next() == '{':
		s.mapping(t, depth)
	case kind == reflect.Slice && s.next() == '[':
		s.list(t.Elem(), depth)
	case kind == reflect.Interface:
		s.tree(depth)
	default: // a text, a number, or a value that the type does not take
		from := s.at
		s.skip()
		s.cost += decoded(s.text[from:s.at]) + allocation
	}
}

// decoded is how many bytes a string has at most when it is decoded: a byte that is not
// UTF-8 becomes three.
func decoded(raw []byte) int64 {
	n := int64(len(raw))
	for _, c := range raw {
		if c >= 0x80 {
			n += 2
		}
	}
	return n
}

// tree adds the cost of a value that may become a tree of maps and lists.
func (s *scanner) tree(depth int) {
	const boxed = 32 // a value in an interface, and what it points to
	s.cost += boxed
	switch {
	case depth > limits.Depth:
		s.fail("depth of the JSON", limits.Depth+1, limits.Depth)
	case s.next() == '{':
		s.mapping(reflect.TypeFor[map[string]any](), depth)
	case s.next() == '[':
		s.list(reflect.TypeFor[any](), depth)
	default:
		from := s.at
		s.skip()
		s.cost += decoded(s.text[from:s.at]) + allocation
	}
}

func (s *scanner) list(elem reflect.Type, depth int) {
	s.each('[', func() {
		s.cost += growth * int64(elem.Size())
		s.value(elem, depth+1)
	})
}

func (s *scanner) mapping(t reflect.Type, depth int) {
	size := int64(t.Key().Size() + t.Elem().Size())
	s.cost += mapSize
	n := 0
	s.each('{', func() {
		if n++; n == 1 {
			s.cost += firstElements * size
		}
		s.cost += mapGrowth*size + decoded(s.key()) + allocation
		s.value(t.Elem(), depth+1)
	})
}

func (s *scanner) object(t reflect.Type, depth int) {
	fields := fieldsOf(t)
	s.each('{', func() {
		if field := fields.find(s.key()); field != nil {
			s.value(field, depth+1)
		} else {
			s.skip() // refused or ignored, and never built
		}
	})
}

// each reads an object or a list and calls element before each member or element. It refuses
// more of them than any request needs.
func (s *scanner) each(open byte, element func()) {
	end := open + 2 // in ASCII
	s.at++
	for n := 0; ; {
		switch c := s.space(); {
		case c == 0 || s.err != nil:
			return
		case c == end:
			s.at++
			return
		case c == ',':
			s.at++
			continue
		case open == '{' && c != '"': // not well-formed
			s.at = len(s.text)
			return
		}
		if n++; n > limits.Elements && !s.uncounted {
			s.fail("elements of one list or object", n, limits.Elements)
			return
		}
		from := s.at
		element()
		if s.at == from { // not well-formed
			s.at = len(s.text)
		}
	}
}

// key reads the name of a member and the colon behind it.
func (s *scanner) key() []byte {
	from := s.at
	s.skip()
	key := s.text[from:s.at]
	if s.space() == ':' {
		s.at++
		s.space()
	}
	if len(key) < 2 {
		return nil
	}
	return key[1 : len(key)-1]
}

// skip reads the next value, however deep it is, and returns how many bytes it has.
func (s *scanner) skip() int {
	from := s.at
	for depth := 0; ; {
		switch s.space() {
		case 0:
			return s.at - from
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			if depth--; depth < 0 {
				return s.at - from // it is not the value's
			}
			s.at++
		case ',', ':':
			if depth == 0 {
				return s.at - from
			}
			s.at++
			continue
		case '"':
			s.str()
		default:
			s.word()
		}
		if depth == 0 {
			return s.at - from
		}
	}
}

// word reads a number, true, false or null.
func (s *scanner) word() {
	for ; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '{', '}', '[', ']', ',', ':', '"', ' ', '\t', '\r', '\n':
			return
		}
	}
}

// str reads a string.
func (s *scanner) str() {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return
		}
	}
	s.at = len(s.text)
}

// space skips white space and returns the byte behind it, 0 at the end.
func (s *scanner) space() byte {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// next returns the next byte, 0 at the end.
func (s *scanner) next() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// fail ends the scan at a limit.
func (s *scanner) fail(what string, n, most int) {
	if s.err == nil {
		s.err = limits.CheckCount(what, n, most)
	}
	s.at = len(s.text)
}

// field is a field of a struct under its name in JSON.
type field struct {
	name string
	t    reflect.Type
}

type fields []field

// types has what fieldsOf has returned.
var types sync.Map

// fieldsOf returns the fields of a struct.
func fieldsOf(t reflect.Type) fields {
	if known, ok := types.Load(t); ok {
		return known.(fields)
	}
	var all fields
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && !f.Anonymous {
			name = f.Name
		}
		if name != "" && name != "-" && f.IsExported() {
			all = append(all, field{name, f.Type})
		}
	}
	types.Store(t, all)
	return all
}

// find returns the type of the field that package json takes for a name between quotes, nil
// if there is none. Names may have escapes, and letters of any case.
func (fs fields) find(quoted []byte) reflect.Type {
	name := string(quoted)
	if strings.Contains(name, `\`) && json.Unmarshal([]byte(`"`+name+`"`), &name) != nil {
		return nil
	}
	for _, f := range fs {
		if f.name == name {
			return f.t
		}
	}
	for _, f := range fs {
		if strings.EqualFold(f.name, name) {
			return f.t
		}
	}
	return nil
}
