// SPDX-License-Identifier: Apache-2.0

package message

import "github.com/triagemq/triagemq/internal/amqp/codec"

// mapWriter appends a section that is a map.
type mapWriter struct {
	dst   []byte
	from  int // where the section begins
	at    codec.Mark
	pairs int
}

func openMap(dst []byte, code uint64) mapWriter {
	w := mapWriter{from: len(dst)}
	w.dst, w.at = codec.BeginMap(codec.AppendDescriptor(dst, code))
	return w
}

// key appends a key, whose value the caller appends to dst.
func (w *mapWriter) key(name string) {
	w.dst = codec.AppendSymbol(w.dst, name)
	w.pairs++
}

// copyExcept copies the pairs of a map as they are encoded, but for those whose
// names drop reports true.
func (w *mapWriter) copyExcept(r codec.Reader, drop func(name string) bool) {
	for r.More() {
		before := r.Rest()
		key := r.Value()
		r.Skip()
		if name, ok := key.Str(); ok && drop(name) {
			continue
		}
		w.dst = append(w.dst, before[:len(before)-r.Len()]...)
		w.pairs++
	}
}

// close ends the section and returns what was appended to. A map without pairs
// leaves no section: some clients read an empty map as one of another type.
func (w *mapWriter) close() []byte {
	if w.pairs == 0 {
		return w.dst[:w.from]
	}
	return codec.EndMap(w.dst, w.at, w.pairs)
}
