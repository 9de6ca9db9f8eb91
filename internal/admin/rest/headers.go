// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/admin/property"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
)

// fromHeaders returns the message properties among the headers of a request.
func fromHeaders(h http.Header) ([]message.Pair, error) {
	var pairs []message.Pair
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if isOurs(name) {
			continue
		}
		v, err := parseHeader(h.Get(name))
		if err != nil {
			return nil, problem.Bad("Header %s: %v.", name, err)
		}
		pairs = append(pairs, message.Pair{Name: name, Value: v})
	}
	return pairs, nil
}

// parseHeader reads a property. Text stands in quotes; where it does not and is
// neither a number nor a boolean, it is taken as it is, as people type it.
func parseHeader(text string) (codec.Value, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, `"`) {
		var s string
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return codec.Value{}, fmt.Errorf("%s is not a text in quotes", text)
		}
		if t, err := http.ParseTime(s); err == nil {
			return codec.Timestamp(t), nil
		}
		return codec.String(s), nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return codec.Long(n), nil
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && f-f == 0 { // a finite one
		return codec.Double(f), nil
	}
	switch strings.ToLower(text) {
	case "true", "false":
		return codec.Bool(strings.EqualFold(text, "true")), nil
	}
	return codec.String(text), nil
}

// setHeaders writes the properties of a message as headers, in their own
// spelling. What would speak for us instead of for the message is left out, and so is
// what would make the headers larger than properties may be.
func setHeaders(h http.Header, m *message.Message) {
	room := limits.Properties
	for name, v := range m.Properties() {
		if !isToken(name) || isOurs(name) {
			continue
		}
		if text, ok := formatHeader(v, room-len(name)); ok {
			h[name] = []string{text}
			room -= len(name) + len(text)
		}
	}
}

// formatHeader returns a value in up to most bytes of JSON.
func formatHeader(v codec.Value, most int) (string, bool) {
	if t, ok := v.Time(); ok {
		v = codec.String(t.UTC().Format(http.TimeFormat))
	}
	b, ok := property.Append(nil, v, most)
	return ascii(string(b)), ok
}

// ascii escapes what a header cannot carry in JSON's own way.
func ascii(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// isToken reports whether a name can be that of a header [RFC 9110 5.6.2].
func isToken(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}
