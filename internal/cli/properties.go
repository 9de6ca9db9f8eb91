// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/triagemq/triagemq/internal/entity"
)

// ParseProperties reads properties of messages: name=value. Numbers, true and
// false are what they look like; anything else is text, and so is what is in
// double quotes.
func ParseProperties(pairs []string) (map[string]entity.Value, error) {
	var out map[string]entity.Value
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, Usage(fmt.Errorf("--property %q is not name=value", pair))
		}
		v, err := parseProperty(text)
		if err != nil {
			return nil, Usage(fmt.Errorf("--property %s: %w", name, err))
		}
		if out == nil {
			out = map[string]entity.Value{}
		}
		out[name] = v
	}
	return out, nil
}

func parseProperty(text string) (entity.Value, error) {
	var v entity.Value
	if json.Valid([]byte(text)) && !strings.ContainsAny(text[:1], "[n") && v.UnmarshalJSON([]byte(text)) == nil {
		return v, nil
	}
	return entity.NewValue(text)
}

// PlainValues returns the values as the client sends them.
func PlainValues(values map[string]entity.Value) map[string]any {
	if values == nil {
		return nil
	}
	out := make(map[string]any, len(values))
	for name, v := range values {
		out[name] = v.Any()
	}
	return out
}
