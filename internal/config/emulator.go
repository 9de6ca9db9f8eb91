// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/entity"
)

// LoadEmulator reads and checks a Config.json of the Service Bus emulator or of
// the Event Hubs emulator.
func LoadEmulator(path string) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read emulator configuration: %w", err)
	}
	return parseEmulator(filepath.Base(path), text)
}

// emulatorFile is the part of both formats that we use. Keys are read in any
// case, as .NET does it.
type emulatorFile struct {
	UserConfig struct {
		Namespaces []struct {
			Name   string
			Queues []struct {
				Name       string
				Properties entity.Queue
			}
			Topics []emulatorTopic
		}
		NamespaceConfig []struct {
			Name     string
			Entities []struct {
				Name           string
				PartitionCount int
				ConsumerGroups []struct{ Name string }
			}
		}
	}
}

type emulatorTopic struct {
	Name          string
	Properties    entity.Topic
	Subscriptions []struct {
		Name       string
		Properties entity.Subscription
		Rules      []emulatorRule
	}
}

type emulatorRule struct {
	Name       string
	Properties struct {
		FilterType        string
		CorrelationFilter *entity.Correlation
		SQLFilter         struct{ SQLExpression string }
		Action            struct{ SQLExpression string }
	}
}

// parseEmulator reads and checks the text of such a file. Like the emulators, it
// accepts comments, trailing commas and numbers in quotes. Properties that a file
// leaves out have the defaults of the service, not the tighter ones of the
// emulators: a message does not expire after an hour here.
func parseEmulator(file string, text []byte) (Config, error) {
	c := Config{source: source{file: file}}
	clean := plainJSON(text)
	var any any
	decoder := json.NewDecoder(bytes.NewReader(clean))
	decoder.UseNumber()
	if err := decoder.Decode(&any); err != nil {
		return Config{}, Faults{jsonFault(file, clean, err)}
	}
	unquoteScalars(any)
	again, err := json.Marshal(any)
	if err != nil {
		return Config{}, Faults{c.Fault("", err.Error())}
	}
	var in emulatorFile
	unread, err := entity.DecodeJSON(again, &in, entity.IgnoreUnknown)
	if err != nil {
		return Config{}, Faults{c.Fault("", err.Error())}
	}
	if err := c.takeEmulator(in); err != nil {
		return Config{}, err
	}
	faults := make(Faults, 0, len(unread))
	for _, f := range unread {
		faults = append(faults, c.Fault(f.Field, f.Problem))
	}
	for _, f := range append(c.settingFaults(), c.entityFaults()...) {
		if !unreadName(unread, f) {
			faults = append(faults, f)
		}
	}
	return c, faults.err()
}

// unreadName reports whether a fault says that a name is missing which could not be read.
func unreadName(unread entity.Faults, f Fault) bool {
	return f.Problem == "missing" && strings.HasSuffix(f.Path, ".name") &&
		slices.ContainsFunc(unread, func(u entity.Fault) bool { return strings.HasSuffix(strings.ToLower(u.Field), ".name") })
}

func (c *Config) takeEmulator(in emulatorFile) error {
	user := in.UserConfig
	if len(user.Namespaces)+len(user.NamespaceConfig) == 0 {
		return Faults{c.Fault("", "neither UserConfig.Namespaces (Service Bus) nor UserConfig.NamespaceConfig (Event Hubs) is there")}
	}
	for _, ns := range user.Namespaces {
		c.Namespace = ns.Name
		for _, q := range ns.Queues {
			q.Properties.Name = q.Name
			c.Queues = append(c.Queues, q.Properties)
		}
		for _, t := range ns.Topics {
			c.Topics = append(c.Topics, t.topic())
		}
	}
	for _, ns := range user.NamespaceConfig {
		c.Namespace = ns.Name
		for _, h := range ns.Entities {
			hub := entity.Hub{Name: h.Name, PartitionCount: h.PartitionCount}
			for _, group := range h.ConsumerGroups {
				if !strings.EqualFold(group.Name, entity.DefaultGroup) { // listed in some samples; always there
					hub.ConsumerGroups = append(hub.ConsumerGroups, entity.ConsumerGroup{Name: group.Name})
				}
			}
			c.Hubs = append(c.Hubs, hub)
		}
	}
	return nil
}

func (t emulatorTopic) topic() Topic {
	topic := Topic{Topic: t.Properties}
	topic.Name = t.Name
	for _, s := range t.Subscriptions {
		s.Properties.Name = s.Name
		for _, r := range s.Rules {
			s.Properties.Rules = append(s.Properties.Rules, r.rule())
		}
		topic.Subscriptions = append(topic.Subscriptions, s.Properties)
	}
	return topic
}

func (r emulatorRule) rule() entity.Rule {
	rule := entity.Rule{Name: r.Name, Action: entity.Action{SQL: r.Properties.Action.SQLExpression}}
	rule.Filter.Kind = entity.FilterKind(strings.ToLower(r.Properties.FilterType))
	switch rule.Filter.Kind {
	case entity.CorrelationFilter:
		rule.Filter.Correlation = r.Properties.CorrelationFilter
	case entity.SQLFilter:
		rule.Filter.SQL = r.Properties.SQLFilter.SQLExpression
	}
	return rule
}

// quotable are the properties whose values are often quoted in emulator files,
// in lower case.
var quotable = map[string]bool{
	"partitioncount": true, "maxdeliverycount": true, "maxsizeinmegabytes": true, "maxmessagesizeinkilobytes": true,
	"requiressession": true, "requiresduplicatedetection": true, "deadletteringonmessageexpiration": true,
	"deadletteringonfilterevaluationexceptions": true, "enablebatchedoperations": true, "enablepartitioning": true,
}

// unquoteScalars takes quotes off numbers and booleans, and empty texts away: they mean
// that nothing is set. What a correlation filter compares is left alone.
func unquoteScalars(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			unquoteScalars(item)
		}
	case map[string]any:
		for key, value := range v {
			text, isText := value.(string)
			switch {
			case isText && text == "":
				delete(v, key)
			case isText && quotable[strings.ToLower(key)]:
				if plain := []byte(strings.ToLower(strings.TrimSpace(text))); json.Valid(plain) {
					v[key] = json.RawMessage(plain)
				}
			case strings.EqualFold(key, "CorrelationFilter"):
			default:
				unquoteScalars(value)
			}
		}
	}
}

// plainJSON removes comments and trailing commas from a text. Everything else
// keeps its position.
func plainJSON(text []byte) []byte {
	text = bytes.TrimPrefix(bytes.Clone(text), []byte("\ufeff"))
	comma := -1 // position of a comma that nothing has followed yet
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			comma = -1
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case c == '/' && i+1 < len(text) && text[i+1] == '/':
			i = blank(text, i, []byte("\n")) - 1
		case c == '/' && i+1 < len(text) && text[i+1] == '*':
			i = blank(text, i, []byte("*/")) - 1
		case c == ',':
			comma = i
		case c == ']' || c == '}':
			if comma >= 0 {
				text[comma] = ' '
			}
			comma = -1
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			comma = -1
		}
	}
	return text
}

// blank overwrites a comment, which begins at from, and returns where it ends.
func blank(text []byte, from int, end []byte) int {
	to := len(text)
	if n := bytes.Index(text[min(from+2, len(text)):], end); n >= 0 {
		to = from + 2 + n + len(end)
	}
	for i := from; i < to; i++ {
		if text[i] != '\n' {
			text[i] = ' '
		}
	}
	return to
}

// jsonFault returns a syntax error with its position.
func jsonFault(file string, text []byte, err error) Fault {
	f := Fault{File: file, Problem: "not JSON: " + err.Error()}
	offset := len(text)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = min(int(syntax.Offset), len(text))
	}
	before := text[:max(offset-1, 0)]
	f.Line = 1 + bytes.Count(before, []byte("\n"))
	f.Column = len(before) - bytes.LastIndexByte(before, '\n')
	return f
}
