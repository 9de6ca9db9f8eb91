// SPDX-License-Identifier: Apache-2.0

package access

import (
	"net/url"
	"strings"
)

// PathOf returns the path that a resource or an audience names, in the one form
// in which paths are compared: lower case, no scheme, host, query or slashes at
// the ends. Clients write the same entity as amqps://host/q, sb://host:1/q/, q or
// /Q. The namespace itself is the empty path.
func PathOf(resource string) string {
	if _, rest, ok := strings.Cut(resource, "://"); ok {
		_, resource, _ = strings.Cut(rest, "/")
	}
	resource, _, _ = strings.Cut(resource, "?")
	return strings.ToLower(strings.Trim(resource, "/"))
}

// scopeOf is PathOf for the resource of a token, whose path may be left out
// together with the scheme: a bare host means the whole namespace. A resource
// that does not begin like a host is a path and is valid only for that: the
// administration client for Go signs the bare name of the queue that is
// forwarded to.
func scopeOf(sr string) (string, error) {
	text, err := url.QueryUnescape(sr)
	if err != nil {
		return "", ErrMalformed
	}
	if !strings.Contains(text, "://") {
		host, rest, _ := strings.Cut(text, "/")
		if strings.ContainsAny(host, ".:") || strings.EqualFold(host, "localhost") {
			return PathOf(rest), nil
		}
	}
	return PathOf(text), nil
}

// within reports whether path is scope or is below it; both as PathOf returns
// them.
func within(path, scope string) bool {
	if scope == "" {
		return true
	}
	rest, ok := strings.CutPrefix(path, scope)
	return ok && (rest == "" || rest[0] == '/')
}
