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

// parseHeader reads a property. Text is in quotes; unquoted text that is
// neither a number nor a boolean is accepted as it is, as people type it.
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

const (
	// headerCost is about what a property takes as a header besides its name and its text: in the
	// map of headers, in the copy that net/http makes of it, and in the list by which it is sorted.
	headerCost = 320
	// headerPiece is how much of that is charged at a time.
	headerPiece = 16 << 10
)

// setHeaders writes the properties of a message as headers, in their own
// spelling, and charges what they take. Without memory for them, it writes none and returns false.
//
// Properties that have a meaning in HTTP are left out: the sender of
// a message must not control its receiver's browser or proxy. So are properties
// that would make the headers larger than properties may be.
func setHeaders(h http.Header, m *message.Message, charge func(int64) bool) bool {
	space := limits.Properties
	cost := int64(0)
	for name, v := range m.Properties() {
		if !isHeader(name) {
			continue
		}
		if text, ok := formatHeader(v, space-len(name)); ok {
			h[name] = []string{text}
			space -= len(name) + len(text)
			cost += headerCost + int64(len(name)+len(text))
		}
		if cost >= headerPiece {
			if !charge(cost) {
				unsetHeaders(h, m)
				return false
			}
			cost = 0
		}
	}
	if !charge(cost) {
		unsetHeaders(h, m)
		return false
	}
	return true
}

// unsetHeaders removes what setHeaders has written.
func unsetHeaders(h http.Header, m *message.Message) {
	for name := range m.Properties() {
		if isHeader(name) {
			delete(h, name)
		}
	}
}

// isHeader reports whether the property with a name is written as a header.
func isHeader(name string) bool { return isToken(name) && !isOurs(name) && !isObeyed(name) }

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

// isOurs reports whether a header belongs to HTTP or to us, and not to a message.
func isOurs(name string) bool {
	return has(name, "accept", "access-control-", "content-", "if-", "proxy-", "sec-", "servicebus", "x-forwarded-", "cookie", "set-cookie") ||
		is(name, "authorization", "brokerproperties", "cache-control", "connection", "date", "expect", "forwarded", "from", "host", "keep-alive",
			"location", "origin", "pragma", "range", "referer", "retry-after", "server", "te", "trailer", "transfer-encoding", "upgrade",
			"upgrade-insecure-requests", "user-agent", "via", "warning", "www-authenticate", "x-content-type-options", "dnt")
}

// isObeyed reports whether a browser, a cache or a proxy does something because of a
// header with that name in an answer. Message properties may be called so, and are
// shown by the JSON API.
func isObeyed(name string) bool {
	return has(name, "attribution-reporting-", "cross-origin-", "surrogate-", "x-accel-", "x-lighttpd-", "x-sendfile") ||
		is(name, "activate-storage-access", "age", "allow", "alt-svc", "alt-used", "authentication-info", "cdn-cache-control", "clear-site-data",
			"connection-allowlist", "critical-ch", "default-style", "document-policy", "etag", "expect-ct", "expires", "feature-policy",
			"integrity-policy", "last-modified", "link", "nel", "no-vary-search", "observe-browsing-topics", "origin-agent-cluster", "origin-trial",
			"p3p", "permissions-policy", "permissions-policy-report-only", "public-key-pins", "public-key-pins-report-only", "refresh",
			"referrer-policy", "report-to", "reporting-endpoints", "require-document-policy", "service-worker-allowed", "set-login", "sourcemap",
			"speculation-rules", "strict-transport-security", "supports-loading-mode", "timing-allow-origin", "tk", "use-as-dictionary", "vary",
			"x-content-security-policy", "x-dns-prefetch-control", "x-download-options", "x-frame-options", "x-permitted-cross-domain-policies",
			"x-reproxy-url", "x-robots-tag", "x-sourcemap", "x-ua-compatible", "x-webkit-csp", "x-xss-protection")
}

// has reports whether a name begins with one of some prefixes, in any case.
func has(name string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return len(name) >= len(p) && strings.EqualFold(name[:len(p)], p) })
}

// is reports whether a name is one of some, in any case.
func is(name string, names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(name, n) })
}
