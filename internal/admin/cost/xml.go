// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"bytes"

	"github.com/triagemq/triagemq/internal/limits"
)

const (
	// elementCost is about what an element takes besides its name: in the tree, in the list
	// of its parent, and in the decoder.
	elementCost = 320
	// attributeCost is about what an attribute takes besides its name and value. One that
	// declares a namespace is an entry of a map as well, and one of a list.
	attributeCost = 512
	// textCopies is how often the text is there: in the decoder, and in the tree, which
	// grows.
	textCopies = 4
)

// XML returns how many bytes it takes to decode a text into a tree of elements, as package
// xml does. An error is a limit that the text exceeds.
func XML(text []byte) (int64, error) {
	sum := textCopies * int64(len(text))
	elements := 0
	for {
		open := bytes.IndexByte(text, '<')
		if open < 0 {
			return sum, nil
		}
		text = text[open:]
		if end, ok := markup(text); ok {
			text = text[end:]
			continue
		}
		attributes, length := tag(text)
		if length > 1 && text[1] != '/' {
			elements++
		}
		sum += elementCost + attributeCost*int64(attributes)
		if err := limits.CheckCount("attributes of one element", attributes, limits.Attributes); err != nil {
			return 0, err
		}
		if err := limits.CheckCount("elements of the XML", elements, limits.XMLElements); err != nil {
			return 0, err
		}
		text = text[length:]
	}
}

// markup returns the end of a comment, a CDATA section, a processing instruction or a
// directive at the beginning of a text, and whether there is one.
func markup(text []byte) (end int, ok bool) {
	for _, m := range []struct{ begin, end string }{{"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}} {
		if rest, ok := bytes.CutPrefix(text, []byte(m.begin)); ok {
			i := bytes.Index(rest, []byte(m.end))
			if i < 0 {
				return len(text), true
			}
			return len(m.begin) + i + len(m.end), true
		}
	}
	if bytes.HasPrefix(text, []byte("<!")) {
		return len(text), true // the reader refuses a directive and reads no further
	}
	return 0, false
}

// tag counts the attributes of a tag at the beginning of a text, and its bytes. Each has an
// equals sign outside of quotes.
func tag(text []byte) (attributes, length int) {
	var quote byte
	for i, c := range text {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '=':
			attributes++
		case c == '>':
			return attributes, i + 1
		}
	}
	return attributes, len(text)
}
