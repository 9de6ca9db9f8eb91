// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/entity"
)

// All faults of a body are reported at once: an unknown field hides no bad
// duration, a value of the wrong type no bad filter, and a bad limit no bad
// policy.
func TestEveryFaultOfABodyAtOnce(t *testing.T) {
	r := start(t)
	if _, err := r.b.CreateTopic(t.Context(), entity.Topic{Name: "t"}); err != nil {
		t.Fatal(err)
	}
	r.queue(entity.Queue{Name: "q"})
	const topic = "/api/v1/topics/t/subscriptions"
	for _, tt := range []struct {
		method, path, body string
		want               []string // the fields at fault
	}{
		{"POST", "/api/v1/queues", `{"name":"n", "lockDuraton":"1m", "lockDuration":"soon", "maxDeliveryCount":"many", "status":"open", "maxSizeInMegabytes":-1}`,
			[]string{"lockDuration", "lockDuraton", "maxDeliveryCount", "maxSizeInMegabytes", "status"}},
		{"PUT", "/api/v1/queues/n", `{"colour":"red", "defaultMessageTimeToLive":"long", "authorizationRules":[{"keyName":"k", "rights":["Read"], "key":"x"}]}`,
			[]string{"authorizationRules[0].key", "authorizationRules[0].primaryKey", "authorizationRules[0].rights[0]", "colour", "defaultMessageTimeToLive"}},
		{"PATCH", "/api/v1/queues/q", `{"colour":"red", "lockDuration":"soon", "policy":{"discipline":"fast"}}`,
			[]string{"colour", "lockDuration", "policy.discipline"}},
		{"POST", "/api/v1/queues", `{"colour":"red"}`, []string{"colour", "name"}},
		{"PUT", "/api/v1/queues/n", `{"colour":"red"}`, []string{"colour"}},
		{"PUT", topic + "/s", `{"colour":"red"}`, []string{"colour"}},
		{"POST", "/api/v1/queues", `{"name":"n", "lockDuration":"1h", "policy":{"discipline":"fast"}}`, []string{"lockDuration", "policy.discipline"}},
		{"POST", topic, `{"name":"s", "rulez":[], "lockDuration":"soon", "rules":[{"name":"a", "filter":{"sql":"x = "}}, {"name":"b", "filter":{"sql":"1=1"}, "action":{"sql":"SET"}}]}`,
			[]string{"lockDuration", "rules[0].filter.sql", "rules[1].action.sql", "rulez"}},
		{"POST", topic, `{"name":"s", "maxDeliveryCount":-1, "defaultRule":{"name":"a", "filter":{"sql":"x = "}}}`,
			[]string{"defaultRule.filter.sql", "maxDeliveryCount"}},
		{"POST", topic, `{"name":"s", "policy":{"discipline":"fast"}, "rules":[{"name":"a", "filter":{"sql":"x = "}}]}`,
			[]string{"policy.discipline", "rules[0].filter.sql"}},
		{"POST", "/api/v1/queues/q/messages", `{"bodi":"x", "timeToLive":"soon", "priority":300, "subject":7}`, []string{"bodi", "priority", "subject", "timeToLive"}},
		{"POST", "/api/v1/queues/q/messages", `[{"body":"x"}, {"bodi":"x", "timeToLive":"soon"}]`, []string{"[1].bodi", "[1].timeToLive"}},
		{"POST", topic + "/s/rules", `{"name":"a/b", "fitler":{}, "filter":{"sql":"x = "}}`, []string{"filter.sql", "fitler", "name"}},
	} {
		got := r.do(tt.method, tt.path, tt.body)
		var answer failure
		got.into(t, &answer)
		var fields []string
		for _, d := range answer.Error.Details {
			fields = append(fields, d.Field)
			if !strings.Contains(answer.Error.Message, d.Problem) {
				t.Errorf("%s %s: the message %q does not say %q", tt.method, tt.path, answer.Error.Message, d.Problem)
			}
		}
		slices.Sort(fields)
		if got.status != http.StatusBadRequest || !slices.Equal(fields, tt.want) {
			t.Errorf("%s %s %s: %d %s\nat fault are %q, want %q", tt.method, tt.path, tt.body, got.status, got.body, fields, tt.want)
		}
	}
}

// A body may have very many faults; a bounded number of them is reported.
func TestFaultsOfABodyAreBounded(t *testing.T) {
	r := start(t)
	got := r.do("POST", "/api/v1/queues", `{"name":"n"`+strings.Repeat(`,"colour":1`, 50_000)+`}`)
	if got.status != http.StatusBadRequest || len(got.body) > 64<<10 {
		t.Errorf("%d, %d bytes, want 400 and few", got.status, len(got.body))
	}
}
