// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/config"
)

func TestPolicyFaultsAreTheirPlacesInTheFile(t *testing.T) {
	cfg, err := config.Parse([]byte(`queues:
  - name: orders
    policy:
      discipline: magic
      classes:
        - {name: a, level: 8, when: "plan ="}
topics:
  - name: t
    subscriptions:
      - name: s
        policy: {aging: {every: 1m}, discipline: aging}
`))
	if err != nil {
		t.Fatal(err)
	}
	err = Config{Config: cfg}.Validate()
	if err == nil {
		t.Fatal("no fault was found")
	}
	for _, part := range []string{
		":4:19: queues[0].policy.discipline: ", ":6:", "queues[0].policy.classes[0].when: ",
		"topics[0].subscriptions[0].policy.aging.maxLevel: missing",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in\n%v", part, err)
		}
	}
}
