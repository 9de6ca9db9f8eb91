// SPDX-License-Identifier: Apache-2.0

package atom

import (
	"encoding/xml"
	"strings"
	"testing"
)

func TestParsePath(t *testing.T) {
	for path, want := range map[string]target{
		"/q":                                    {kind: kindEntity, entity: "q"},
		"/a/b/c":                                {kind: kindEntity, entity: "a/b/c"},
		"/q/":                                   {kind: kindEntity, entity: "q"},
		"/subscriptions":                        {kind: kindEntity, entity: "subscriptions"},
		"/t/Subscriptions":                      {kind: feedSubscriptions, entity: "t"},
		"/t/subscriptions/":                     {kind: feedSubscriptions, entity: "t"},
		"/a/t/Subscriptions/s":                  {kind: kindSubscription, entity: "a/t", subscription: "s"},
		"/subscriptions/subscriptions/rules":    {kind: kindSubscription, entity: "subscriptions", subscription: "rules"},
		"/t/Subscriptions/s/Rules":              {kind: feedRules, entity: "t", subscription: "s"},
		"/t/Subscriptions/s/rules/":             {kind: feedRules, entity: "t", subscription: "s"},
		"/a/t/SUBSCRIPTIONS/s/RULES/$Default":   {kind: kindRule, entity: "a/t", subscription: "s", rule: "$Default"},
		"/t/Subscriptions/subscriptions/Rules/": {kind: feedRules, entity: "t", subscription: "subscriptions"},
		"/h/ConsumerGroups":                     {kind: feedGroups, entity: "h"},
		"/a/h/consumergroups/":                  {kind: feedGroups, entity: "a/h"},
		"/h/consumergroups/$Default":            {kind: kindGroup, entity: "h", group: "$Default"},
		"/h/consumergroups/g/partitions":        {kind: feedPartitions, entity: "h", group: "g"},
		"/h/consumergroups/g/partitions/":       {kind: feedPartitions, entity: "h", group: "g"},
		"/a/h/ConsumerGroups/g/Partitions/7":    {kind: kindPartition, entity: "a/h", group: "g", partition: "7"},
		"/consumergroups/consumergroups/g":      {kind: kindGroup, entity: "consumergroups", group: "g"},
		"/$Resources/EventHubs":                 {kind: feedHubs},
		"/$namespaceinfo":                       {kind: namespaceInfo},
		"/$Resources/QUEUES":                    {kind: feedQueues},
		"/$resources/topics/":                   {kind: feedTopics},
	} {
		got, err := parsePath(path)
		if err != nil || got != want {
			t.Errorf("parsePath(%q) = %+v, %v, want %+v", path, got, err, want)
		}
	}
	for _, path := range []string{"", "/", "//"} {
		if got, err := parsePath(path); err == nil {
			t.Errorf("parsePath(%q) = %+v, want an error", path, got)
		}
	}
}

// Everything that is written is read back unchanged, as far as XML can
// represent it.
func TestWrittenTextReadsBack(t *testing.T) {
	for text, want := range map[string]string{
		`a<b> & "c" 'd'`: `a<b> & "c" 'd'`, "two\nlines\tand\rmore": "two\nlines\tand\rmore", "grüße 🎉": "grüße 🎉",
		"\x00\x1f": "\ufffd\ufffd", "bad \xff utf": "bad \ufffd utf", "\ufffe": "\ufffd",
	} {
		var w writer
		w.leaf("X", text, attr{"a", text})
		var got struct {
			A    string `xml:"a,attr"`
			Text string `xml:",chardata"`
		}
		if err := xml.NewDecoder(strings.NewReader(w.String())).Decode(&got); err != nil || got.Text != want {
			t.Errorf("%q is written %s and read %q, %v, want %q", text, w.String(), got.Text, err, want)
		}
	}
}
