// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	good := []string{"a", "orders", "Orders-2.eu_west", "site/orders", "a/b/c", "messages", "rules", strings.Repeat("x", 260)}
	bad := []string{
		"", "-a", "a-", "/a", "a/", "a b", "$cbs", "a/$DeadLetterQueue", "größe", "a//b", "a/../b", "a\x00b", "a?b",
		"t/Subscriptions/s", "t/subscriptions", "q/messages", "hub/ConsumerGroups/g", strings.Repeat("x", 261),
	}
	checkNames(t, "checkName", checkName, good, bad)
}

func TestCheckSubscriptionName(t *testing.T) {
	good := []string{"s", "High", "a-b.c_d", strings.Repeat("x", 50)}
	bad := []string{"", "a/b", "$Default", "-a", strings.Repeat("x", 51)}
	checkNames(t, "checkSubscriptionName", checkSubscriptionName, good, bad)
}

func TestCheckRuleName(t *testing.T) {
	checkNames(t, "CheckRuleName", checkRuleName, []string{"$Default", "$default", "high"}, []string{"$other", "", "a/b"})
}

func TestCheckGroupName(t *testing.T) {
	checkNames(t, "checkGroupName", checkGroupName, []string{"$Default", "$default", "g"}, []string{"$other", "", "a/b", strings.Repeat("x", 51)})
}

func checkNames(t *testing.T, what string, check func(string) error, good, bad []string) {
	t.Helper()
	for _, name := range good {
		if err := check(name); err != nil {
			t.Errorf("%s(%q) = %v, want nil", what, name, err)
		}
	}
	for _, name := range bad {
		if err := check(name); !errors.Is(err, ErrName) {
			t.Errorf("%s(%q) = %v, want %v", what, name, err, ErrName)
		}
	}
}

func TestKeyIgnoresCase(t *testing.T) {
	if Key("TestQueue") != Key("testqueue") || Key("a") == Key("b") {
		t.Error("Key must distinguish names that differ by more than case")
	}
}
