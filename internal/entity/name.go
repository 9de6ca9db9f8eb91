// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"errors"
	"fmt"
	"strings"
)

// Longest names, in characters.
const (
	maxPathLength      = 260 // of a queue, topic or hub
	maxNameLength      = 50  // of a subscription, rule, consumer group or partition
	maxPublisherLength = 256
)

// DefaultRule is the name of the rule of a new subscription that is created
// without rules.
const DefaultRule = "$Default"

// Errors of names.
var (
	// ErrName means that a text cannot be the name of anything.
	ErrName = errors.New("entity: bad name")
)

// Key returns the form of a name or path under which it is stored and compared:
// names differ by more than case.
func Key(name string) string { return strings.ToLower(name) }

// reserved are the words that addresses and HTTP paths are made of. A name may
// be one of them, but may not have one among several segments: orders/messages
// as a queue and the messages of orders would be one address.
var reserved = []string{"subscriptions", "rules", "messages", "consumergroups", "partitions", "publishers"}

// checkName reports why name cannot be the name of a queue, topic or hub. Names are
// made of letters, digits and . - _ in segments separated by /; they begin and
// end with a letter or digit.
func checkName(name string) error {
	if err := checkText(name, maxPathLength); err != nil {
		return err
	}
	segments := strings.Split(name, "/")
	if len(segments) == 1 {
		return nil
	}
	for _, segment := range segments {
		switch segment {
		case "", ".", "..":
			return badName(name, "has an empty segment")
		}
		for _, word := range reserved {
			if strings.EqualFold(segment, word) {
				return badName(name, fmt.Sprintf("has the reserved segment %s", segment))
			}
		}
	}
	return nil
}

// checkSubscriptionName reports why name cannot be the name of a subscription:
// as for a queue, in one segment.
func checkSubscriptionName(name string) error {
	if err := checkText(name, maxNameLength); err != nil {
		return err
	}
	if strings.Contains(name, "/") {
		return badName(name, "has a slash")
	}
	return nil
}

// checkRuleName reports why name cannot be the name of a rule: as for a
// subscription, or $Default.
func checkRuleName(name string) error {
	if strings.EqualFold(name, DefaultRule) {
		return nil
	}
	return checkSubscriptionName(name)
}

// checkGroupName reports why name cannot be the name of a consumer group: as for a
// subscription, or $Default.
func checkGroupName(name string) error {
	if strings.EqualFold(name, DefaultGroup) {
		return nil
	}
	return checkSubscriptionName(name)
}

// checkPublisherName reports why name cannot be the name of a publisher of a hub.
func checkPublisherName(name string) error {
	if err := checkText(name, maxPublisherLength); err != nil {
		return err
	}
	if strings.Contains(name, "/") {
		return badName(name, "has a slash")
	}
	return nil
}

// checkPartition reports why id cannot be the number of a partition in an address. Whether
// it is a number, and the hub has that partition, is for the reader of the address: its
// answer is another than for an address that cannot be read.
func checkPartition(id string) error {
	for _, r := range id {
		if !alphanumeric(r) && !strings.ContainsRune("._-", r) {
			return badName(id, "is no partition")
		}
	}
	if id == "" || len(id) > maxNameLength {
		return badName(id, "is no partition")
	}
	return nil
}

func checkText(name string, most int) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrName)
	case len(name) > most:
		return fmt.Errorf("%w: %d characters, at most %d are allowed", ErrName, len(name), most)
	}
	for _, r := range name {
		if !alphanumeric(r) && !strings.ContainsRune("._-/", r) {
			return badName(name, fmt.Sprintf("has the character %q; allowed are letters, digits and . - _ /", r))
		}
	}
	if !alphanumeric(rune(name[0])) || !alphanumeric(rune(name[len(name)-1])) {
		return badName(name, "must begin and end with a letter or digit")
	}
	return nil
}

func badName(name, why string) error { return fmt.Errorf("%w: %q %s", ErrName, name, why) }

func alphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
