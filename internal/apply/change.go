// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
)

// Change is a property that gets another value. The values are as a file would
// have them; none is empty.
type Change struct {
	Property string `json:"property"`
	From     string `json:"from,omitzero"`
	To       string `json:"to,omitzero"`
}

// identity are the properties that identify an entity, and those that are
// compared separately.
var identity = []string{"name", "rules", "defaultRule", "consumerGroups", "createdAt", "updatedAt"}

// changes compares two definitions of one type property by property, in the
// spelling that files and the wire have in common.
func changes(old, next any) []Change {
	from, to := properties(old), properties(next)
	names := slices.Sorted(maps.Keys(from))
	names = append(names, slices.Sorted(maps.Keys(to))...)
	slices.Sort(names)
	var cs []Change
	for _, name := range slices.Compact(names) {
		if slices.Contains(identity, name) || bytes.Equal(from[name], to[name]) {
			continue
		}
		c := Change{Property: name, From: show(name, from[name]), To: show(name, to[name])}
		switch { // a switch that is off is left out of JSON
		case c.From == "" && c.To == "true":
			c.From = "false"
		case c.From == "true" && c.To == "":
			c.To = "false"
		}
		cs = append(cs, c)
	}
	return cs
}

// properties returns the properties of a definition, each in one canonical form.
func properties(definition any) map[string]json.RawMessage {
	text, err := json.Marshal(definition)
	if err != nil {
		panic("apply: a definition that cannot be written: " + err.Error()) // they are plain values
	}
	var decoded map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&decoded); err != nil {
		panic("apply: a definition that cannot be read: " + err.Error())
	}
	out := map[string]json.RawMessage{}
	for name, value := range decoded {
		if name == secrets {
			forgetTimes(value)
		}
		out[name] = canonical(value)
	}
	return out
}

// canonical writes a decoded value: keys are sorted, and what people wrote as text
// stays readable.
func canonical(value any) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // it was JSON before
	return bytes.TrimSpace(b.Bytes())
}

// forgetTimes drops when authorization rules were made, which no file knows.
func forgetTimes(rules any) {
	list, _ := rules.([]any)
	for _, r := range list {
		if fields, ok := r.(map[string]any); ok {
			delete(fields, "createdTime")
			delete(fields, "modifiedTime")
		}
	}
}

// secrets is the property whose values contain keys.
const secrets = "authorizationRules"

// show returns a value for people: text without its quotes, rules without keys, a
// policy without the secret that signs its alerts.
func show(name string, raw json.RawMessage) string {
	if name == "policy" {
		return string(withoutSecret(raw))
	}
	if name == secrets {
		var rules entity.AuthorizationRules
		if len(raw) == 0 || json.Unmarshal(raw, &rules) != nil {
			return ""
		}
		return fmt.Sprint([]entity.AuthorizationRule(rules)) // its String hides the keys
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// withoutSecret returns a policy with dots for the secret of its webhook.
func withoutSecret(raw json.RawMessage) json.RawMessage {
	var policy map[string]any
	if json.Unmarshal(raw, &policy) != nil {
		return raw
	}
	alerts, _ := policy["alerts"].(map[string]any)
	if _, has := alerts["secret"]; !has {
		return raw
	}
	alerts["secret"] = "…"
	return canonical(policy)
}

// plain returns a rule without what no file knows: when it was made, and the SQL
// that clients put into filters that let everything or nothing through.
func plain(r entity.Rule) entity.Rule {
	r = r.WithDefaults()
	r.CreatedAt = time.Time{}
	if r.Filter.Kind == entity.TrueFilter || r.Filter.Kind == entity.FalseFilter {
		r.Filter.SQL, r.Filter.Parameters = "", nil
	}
	return r
}

// ruleChanges are what new rules add.
func ruleChanges(rules []entity.Rule) []Change {
	var cs []Change
	for _, r := range rules {
		cs = append(cs, Change{Property: "rule " + r.Name, To: Describe(r)})
	}
	return cs
}
