// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"errors"
	"strings"
	"testing"
)

func TestParsePath(t *testing.T) {
	for addr, want := range map[string]Path{
		"orders":                                   {Entity: "orders"},
		"/orders":                                  {Entity: "orders"},
		"orders/":                                  {Entity: "orders"},
		"site/orders":                              {Entity: "site/orders"},
		"amqps://host:5671/site/orders":            {Entity: "site/orders"},
		"sb://localhost/orders?x=y":                {Entity: "orders"},
		"sb://localhost/site%2Forders":             {Entity: "site/orders"},
		"orders/$DeadLetterQueue":                  {Entity: "orders", SubQueue: DeadLetter},
		"orders/$deadletterqueue":                  {Entity: "orders", SubQueue: DeadLetter},
		"orders/$Transfer/$DeadLetterQueue":        {Entity: "orders", SubQueue: TransferDeadLetter},
		"orders/$management":                       {Entity: "orders", Management: true},
		"orders/$DeadLetterQueue/$management":      {Entity: "orders", SubQueue: DeadLetter, Management: true},
		"$management":                              {Management: true},
		"$cbs":                                     {Entity: "$cbs"},
		"$alerts/Subscriptions/ops":                {Entity: "$alerts", Subscription: "ops"},
		"news/Subscriptions/high":                  {Entity: "news", Subscription: "high"},
		"news/Subscriptions/Partitions":            {Entity: "news", Subscription: "Partitions"},
		"clicks/Partitions/3":                      {Entity: "clicks", Partition: "3"},
		"clicks/partitions/-1":                     {Entity: "clicks", Partition: "-1"},
		"partitions/partitions/abc":                {Entity: "partitions", Partition: "abc"},
		"site/clicks/Publishers/device.7":          {Entity: "site/clicks", Publisher: "device.7"},
		"clicks/ConsumerGroups/$Default":           {Entity: "clicks", Group: "$Default"},
		"clicks/CONSUMERGROUPS/g/PARTITIONS/1023":  {Entity: "clicks", Group: "g", Partition: "1023"},
		"clicks/ConsumerGroups/g/$management":      {Entity: "clicks", Group: "g", Management: true},
		"a/b/SUBSCRIPTIONS/High":                   {Entity: "a/b", Subscription: "High"},
		"news/subscriptions/high/$DeadLetterQueue": {Entity: "news", Subscription: "high", SubQueue: DeadLetter},
		"sb://h/news/Subscriptions/high/$Transfer/$deadLetterQueue/$Management": {
			Entity: "news", Subscription: "high", SubQueue: TransferDeadLetter, Management: true,
		},
	} {
		got, err := ParsePath(addr)
		if err != nil || got != want {
			t.Errorf("ParsePath(%q) = %+v, %v, want %+v", addr, got, err, want)
		}
	}
}

func TestParsePathRefuses(t *testing.T) {
	for _, addr := range []string{
		"", "/", "//", "sb://host", "sb://host/", "a//b", "orders/$other", "orders/$Transfer", "$DeadLetterQueue",
		"clicks/Partitions", "clicks/Partitions/", "clicks/Partitions/a b", "clicks/Partitions/" + strings.Repeat("1", 51),
		"clicks/ConsumerGroups", "clicks/ConsumerGroups/$other", "clicks/ConsumerGroups/" + strings.Repeat("x", 51),
		"clicks/Publishers", "clicks/Publishers/$p", "clicks/Publishers/p/Partitions/0", "clicks/Partitions/0/ConsumerGroups/g",
		"clicks/ConsumerGroups/g/$DeadLetterQueue", "news/Subscriptions/s/Partitions/0", "Partitions/0", "clicks/Publishers/" + strings.Repeat("x", 257),
		"news/Subscriptions", "news/Subscriptions/", "news/Subscriptions/a/b", "news/Subscriptions/$x",
		"sb://host/%zz", "a b", "a\nb", strings.Repeat("x", 261),
		"news/Subscriptions/" + strings.Repeat("x", 51),
	} {
		if got, err := ParsePath(addr); !errors.Is(err, ErrPath) {
			t.Errorf("ParsePath(%q) = %+v, %v, want %v", addr, got, err, ErrPath)
		}
	}
}

func TestPathSpelling(t *testing.T) {
	p, err := ParsePath("/News/SUBSCRIPTIONS/high/$TRANSFER/$deadletterqueue/$MANAGEMENT")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.String(), "News/Subscriptions/high/$Transfer/$DeadLetterQueue/$management"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	if got, want := p.Queue(), "News/Subscriptions/high"; got != want {
		t.Errorf("Queue() = %q, want %q", got, want)
	}
	h, err := ParsePath("Clicks/consumergroups/$DEFAULT/partitions/0")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := h.String(), "Clicks/ConsumerGroups/$DEFAULT/Partitions/0"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	if got, want := h.Queue(), "Clicks"; got != want {
		t.Errorf("Queue() = %q, want %q", got, want)
	}
	if got := (Path{Management: true}).String(); got != "$management" {
		t.Errorf("the namespace's management node is %q, want $management", got)
	}
}

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{
		"orders", "/a/b", "sb://h/q", "t/Subscriptions/s/$DeadLetterQueue", "q/$Transfer/$DeadLetterQueue/$management",
		"h/ConsumerGroups/$Default/Partitions/0", "h/Partitions/-1/$management", "h/Publishers/p", "partitions/partitions/partitions",
		"$management", "$alerts", "sb://h/%2e%2e/q", "a/Subscriptions/b/Subscriptions/c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, addr string) {
		p, err := ParsePath(addr)
		if err != nil {
			return // rejecting is fine, panicking is not
		}
		if again, err := ParsePath(p.String()); err != nil || again != p {
			t.Fatalf("round trip: %q -> %+v -> %q -> %+v, %v", addr, p, p.String(), again, err)
		}
		if upper, err := ParsePath(strings.ToUpper(p.String())); err != nil || Key(upper.String()) != Key(p.String()) {
			t.Fatalf("%q in capitals is %+v, %v, want the same address", p.String(), upper, err)
		}
	})
}

func TestOwner(t *testing.T) {
	for addr, want := range map[string]string{
		"":                              "",
		"a":                             "a",
		"/A/":                           "a",
		"a/b":                           "a/b",
		"a/b/$management":               "a/b",
		"a/$DeadLetterQueue":            "a",
		"a/$Transfer/$DeadLetterQueue":  "a",
		"T/Subscriptions/s":             "t",
		"t/Subscriptions":               "t",
		"a/t/subscriptions/s/rules/r":   "a/t",
		"a/messages/head":               "a",
		"messages/messages/head":        "messages",
		"subscriptions/subscriptions/s": "subscriptions",
		"$alerts/subscriptions/s":       "$alerts",
		"$management":                   "$management",
		"$resources/queues":             "$resources/queues",
		"t/subscriptions/s/$management": "t",
		"t/subscriptions/subscriptions": "t",

		"site/Hub/ConsumerGroups/$Default/Partitions/0": "site/hub",
		"hub/Partitions/0":        "hub",
		"hub/Publishers/p":        "hub",
		"partitions/partitions/1": "partitions",
	} {
		if got := Owner(addr); got != want {
			t.Errorf("Owner(%q) = %q, want %q", addr, got, want)
		}
	}
}
