// SPDX-License-Identifier: Apache-2.0

package atom

import (
	"bytes"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
)

// writer writes XML with exact prefixes and order, which encoding/xml would
// change.
type writer struct {
	bytes.Buffer
}

// attr is an attribute, or a namespace declaration.
type attr struct{ name, value string }

func (w *writer) open(name string, attrs ...attr) {
	w.WriteByte('<')
	w.WriteString(name)
	for _, a := range attrs {
		w.WriteByte(' ')
		w.WriteString(a.name)
		w.WriteString(`="`)
		w.escaped(a.value, "&quot;")
		w.WriteByte('"')
	}
	w.WriteByte('>')
}

func (w *writer) close(name string) {
	w.WriteString("</")
	w.WriteString(name)
	w.WriteByte('>')
}

// escaped writes text. Quotes are left as they are where they may be: users of
// the Go client see the text of an error exactly as in the reply.
func (w *writer) escaped(text string, quote string) {
	for _, r := range text {
		switch {
		case r == '&':
			w.WriteString("&amp;")
		case r == '<':
			w.WriteString("&lt;")
		case r == '>':
			w.WriteString("&gt;")
		case r == '"':
			w.WriteString(quote)
		case r == '\t', r == '\n', r >= ' ' && r != utf8.RuneError && r != 0xfffe && r != 0xffff:
			w.WriteRune(r)
		case r == '\r':
			w.WriteString("&#xD;")
		default:
			w.WriteRune(utf8.RuneError) // XML has no way to write it
		}
	}
}

func (w *writer) leaf(name, text string, attrs ...attr) {
	w.open(name, attrs...)
	w.escaped(text, `"`)
	w.close(name)
}

// given writes a text, or nothing if it is empty.
func (w *writer) given(name, text string) {
	if text != "" {
		w.leaf(name, text)
	}
}

func (w *writer) boolean(name string, b bool) { w.leaf(name, strconv.FormatBool(b)) }

func (w *writer) integer(name string, n int64) { w.leaf(name, strconv.FormatInt(n, 10)) }

// count writes a number that clients read into 32 bits.
func (w *writer) count(name string, n int64) { w.integer(name, min(n, math.MaxInt32)) }

func (w *writer) duration(name string, d entity.Duration) { w.leaf(name, d.ISO()) }

// instant writes a time; one that never was is written as the service does it.
func (w *writer) instant(name string, t time.Time) {
	if t.IsZero() {
		w.leaf(name, "0001-01-01T00:00:00")
		return
	}
	w.leaf(name, t.UTC().Format("2006-01-02T15:04:05.9999999Z"))
}

// describe opens a description; i is the prefix that the JavaScript client
// searches.
func (w *writer) describe(name string) {
	w.open(name, attr{"xmlns", nsBus}, attr{"xmlns:i", nsInstance})
}

// counts writes CountDetails, whose attribute contains the prefix of its
// children for the JavaScript client.
func (w *writer) counts(c broker.Counts) {
	w.open("CountDetails", attr{"xmlns:d2p1", nsCounts})
	w.count("d2p1:ActiveMessageCount", c.Active+c.Deferred) // which there counts both
	w.count("d2p1:DeadLetterMessageCount", c.Dead)
	w.count("d2p1:ScheduledMessageCount", c.Scheduled)
	w.count("d2p1:TransferMessageCount", c.Transfer)
	w.count("d2p1:TransferDeadLetterMessageCount", c.TransferDead)
	w.close("CountDetails")
}

func (w *writer) times(rt broker.Runtime) {
	w.instant("CreatedAt", rt.CreatedAt)
	w.instant("UpdatedAt", rt.UpdatedAt)
	w.instant("AccessedAt", rt.AccessedAt)
}
