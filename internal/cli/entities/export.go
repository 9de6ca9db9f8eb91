// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
)

// exportFlags are what export can be told.
type exportFlags struct {
	*cli.Target
	keys bool
}

func ExportCommand(s cli.Streams) *cobra.Command {
	var f exportFlags
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use:   "export",
		Short: "Print a broker's entities as a file for apply",
		Long: `Print the queues, topics, subscriptions, rules and event hubs of a broker as a file that apply and
serve --config read. Properties that have their default are left out, and so are access
keys and the secrets of webhooks unless --keys asks for them.`,
		Example: "  triagemq export > triagemq.yaml",
		Args:    cli.Exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	})
	f.Target = t
	cmd.Flags().BoolVar(&f.keys, "keys", false, "include authorization rules with their keys, and the secrets of webhooks")
	return cmd
}

func (f *exportFlags) run(ctx context.Context) error {
	a, err := f.API()
	if err != nil {
		return err
	}
	n, err := namespace(ctx, a)
	if err != nil {
		return err
	}
	var doc yaml.MapSlice
	if len(n.Queues) > 0 {
		var queues []yaml.MapSlice
		for _, q := range n.Queues {
			queues = append(queues, f.properties(q, entity.Queue{}.WithDefaults()))
		}
		doc = append(doc, yaml.MapItem{Key: "queues", Value: queues})
	}
	if len(n.Topics) > 0 {
		var topics []yaml.MapSlice
		for _, t := range n.Topics {
			topics = append(topics, f.topic(t))
		}
		doc = append(doc, yaml.MapItem{Key: "topics", Value: topics})
	}
	if len(n.Hubs) > 0 {
		var hubs []yaml.MapSlice
		for _, h := range n.Hubs {
			hubs = append(hubs, f.hub(h))
		}
		doc = append(doc, yaml.MapItem{Key: "hubs", Value: hubs})
	}
	if len(doc) == 0 {
		fmt.Fprintln(f.Err, "There are no entities.")
		return nil
	}
	text, err := yaml.MarshalWithOptions(doc, yaml.IndentSequence(true))
	if err != nil {
		return err
	}
	if f.JSON {
		asJSON, err := yaml.YAMLToJSON(text)
		if err != nil {
			return err
		}
		return cli.AnswerJSON(f.Out, json.RawMessage(asJSON))
	}
	_, err = f.Out.Write(text)
	return err
}

func (f *exportFlags) topic(t config.Topic) yaml.MapSlice {
	out := f.properties(t.Topic, entity.Topic{}.WithDefaults())
	var subs []yaml.MapSlice
	for _, s := range t.Subscriptions {
		rules := s.Rules
		s.Rules = nil
		sub := f.properties(s, entity.Subscription{}.WithDefaults())
		written := []yaml.MapSlice{}
		for _, r := range rules {
			written = append(written, rule(r))
		}
		subs = append(subs, append(sub, yaml.MapItem{Key: "rules", Value: written}))
	}
	if subs != nil {
		out = append(out, yaml.MapItem{Key: "subscriptions", Value: subs})
	}
	return out
}

func (f *exportFlags) hub(h entity.Hub) yaml.MapSlice {
	groups := h.ConsumerGroups
	h.ConsumerGroups = nil
	out := f.properties(h, entity.Hub{}.WithDefaults())
	var written []any
	for _, g := range groups {
		if g.UserMetadata == "" {
			written = append(written, g.Name)
			continue
		}
		written = append(written, yaml.MapSlice{{Key: "name", Value: g.Name}, {Key: "userMetadata", Value: g.UserMetadata}})
	}
	if written != nil {
		out = append(out, yaml.MapItem{Key: "consumerGroups", Value: written})
	}
	return out
}

// properties returns what of a definition is not the default, the name first.
func (f *exportFlags) properties(definition, defaults any) yaml.MapSlice {
	fields, usual := fieldsOf(definition), fieldsOf(defaults)
	out := yaml.MapSlice{{Key: "name", Value: fields["name"]}}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name == "name" || name == "authorizationRules" && !f.keys || same(fields[name], usual[name]) {
			continue
		}
		switch {
		case name == "authorizationRules":
			forgetTimes(fields[name])
		case name == "policy" && !f.keys:
			f.forgetSecret(fields["name"], fields[name])
		}
		out = append(out, yaml.MapItem{Key: name, Value: fields[name]})
	}
	return out
}

// forgetSecret drops what signs the alerts of a policy, and says so: applied as it
// is, the file would have them sent unsigned.
func (f *exportFlags) forgetSecret(entity, policy any) {
	fields, _ := policy.(map[string]any)
	alerts, _ := fields["alerts"].(map[string]any)
	if _, has := alerts["secret"]; has {
		delete(alerts, "secret")
		fmt.Fprintf(f.Err, "The secret of the webhook of %v is left out; --keys includes it.\n", entity)
	}
}

// forgetTimes drops when authorization rules were made, which no file can say.
func forgetTimes(rules any) {
	list, _ := rules.([]any)
	for _, r := range list {
		if fields, ok := r.(map[string]any); ok {
			delete(fields, "createdTime")
			delete(fields, "modifiedTime")
		}
	}
}

func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// fieldsOf returns the fields of a definition as JSON has them.
func fieldsOf(definition any) map[string]any {
	text, err := json.Marshal(definition)
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var fields map[string]any
	_ = d.Decode(&fields) // it was written a moment ago
	return numbers(fields).(map[string]any)
}

// numbers turns the numbers of decoded JSON into such as YAML writes without
// quotes.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case map[string]any:
		for name, field := range v {
			v[name] = numbers(field)
		}
	case []any:
		for i, item := range v {
			v[i] = numbers(item)
		}
	}
	return v
}

// rule writes a rule in the short form where there is one.
func rule(r entity.Rule) yaml.MapSlice {
	out := yaml.MapSlice{{Key: "name", Value: r.Name}}
	r = r.WithDefaults()
	var filter any
	switch {
	case r.Filter.Kind == entity.TrueFilter || r.Filter.Kind == entity.FalseFilter:
		filter = r.Filter.Kind == entity.TrueFilter
	case r.Filter.Kind == entity.SQLFilter && len(r.Filter.Parameters) == 0:
		filter = r.Filter.SQL
	default:
		r.Filter.Kind = "" // it follows from what is there
		filter = fieldsOf(r.Filter)
	}
	out = append(out, yaml.MapItem{Key: "filter", Value: filter})
	switch {
	case r.Action.SQL == "":
	case len(r.Action.Parameters) == 0:
		out = append(out, yaml.MapItem{Key: "action", Value: r.Action.SQL})
	default:
		out = append(out, yaml.MapItem{Key: "action", Value: fieldsOf(r.Action)})
	}
	return out
}
