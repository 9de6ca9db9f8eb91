// SPDX-License-Identifier: Apache-2.0

package errtext

import (
	"strings"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/policy"
)

// maxTextErrors is how many errors in one error Text visits: there may be one for each
// message of a request.
const maxTextErrors = 100

// Text returns the text of an error for users: without the package names with which the
// errors in it begin.
func Text(err error) string {
	text, left := err.Error(), maxTextErrors
	var strip func(error)
	strip = func(err error) {
		if left--; left < 0 {
			return
		}
		switch err.(type) { //nolint:errorlint // as below
		case nil, entity.Faults, policy.Faults, policy.Fault:
			return // these begin with the name of a field
		}
		if said := err.Error(); isPackage(said) {
			_, rest, _ := strings.Cut(said, ": ")
			text = strings.Replace(text, said, rest, 1)
		}
		switch e := err.(type) { //nolint:errorlint // it walks the chain, as errors.Is does
		case interface{ Unwrap() error }:
			strip(e.Unwrap())
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				strip(inner)
			}
		}
	}
	strip(err)
	return text
}

// isPackage reports whether a text begins with the name of a package.
func isPackage(text string) bool {
	name, _, ok := strings.Cut(text, ": ")
	if !ok {
		return false
	}
	switch name {
	case "access", "broker", "caller", "codec", "endpoint", "engine", "entity", "filter", "frame", "group", "hubs", "journal", "limits",
		"message", "objective", "policy", "pools", "queue", "queueserver", "servicebus", "stream", "streamserver", "wal":
		return true
	}
	return false
}
