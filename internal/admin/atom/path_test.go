// SPDX-License-Identifier: Apache-2.0

package atom

import (
	"encoding/xml"
	"strings"
	"testing"
)

func TestParsePath(t *testing.T) {
	for path, want := range map[string]target{
		"/q":                                    {kindEntity, "q", "", ""},
		"/a/b/c":                                {kindEntity, "a/b/c", "", ""},
		"/q/":                                   {kindEntity, "q", "", ""},
		"/subscriptions":                        {kindEntity, "subscriptions", "", ""},
		"/t/Subscriptions":                      {feedSubscriptions, "t", "", ""},
		"/t/subscriptions/":                     {feedSubscriptions, "t", "", ""},
		"/a/t/Subscriptions/s":                  {kindSubscription, "a/t", "s", ""},
		"/subscriptions/subscriptions/rules":    {kindSubscription, "subscriptions", "rules", ""},
		"/t/Subscriptions/s/Rules":              {feedRules, "t", "s", ""},
		"/t/Subscriptions/s/rules/":             {feedRules, "t", "s", ""},
		"/a/t/SUBSCRIPTIONS/s/RULES/$Default":   {kindRule, "a/t", "s", "$Default"},
		"/t/Subscriptions/subscriptions/Rules/": {feedRules, "t", "subscriptions", ""},
		"/$namespaceinfo":                       {namespaceInfo, "", "", ""},
		"/$Resources/QUEUES":                    {feedQueues, "", "", ""},
		"/$resources/topics/":                   {feedTopics, "", "", ""},
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
