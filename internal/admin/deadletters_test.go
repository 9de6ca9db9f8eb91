// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/entity"
)

// B3: the dead letters of topics, those that could not be forwarded among them,
// are peeked, received, redriven and purged like those of queues.
func TestDeadLettersOfATopicOverHTTP(t *testing.T) {
	b := brokertest.StartOn(t, brokertest.Strand(t, "t", "a", "b", "c", "d"))
	r := startOn(t, b, func(k *access.RuleAuthority) access.Authority { return k })
	if _, err := b.CreateSubscription(t.Context(), "t", entity.Subscription{Name: "s"}); err != nil {
		t.Fatal(err)
	}
	r.queue(entity.Queue{Name: "elsewhere"})
	for query, addr := range map[string]string{"": "t/$DeadLetterQueue", "?transfer=true": "t/$Transfer/$DeadLetterQueue"} {
		const at = apiRoot + "/topics/t/deadletters"
		var list Messages
		r.want(200, "GET", at+query, "").into(t, &list)
		if len(list.Messages) != 4 || list.Messages[0].Body != "a" {
			t.Errorf("%s lists %+v, want a to d", at+query, list.Messages)
		}
		var one Message
		r.want(200, "GET", at+"/2"+query, "").into(t, &one)
		if one.Body != "b" {
			t.Errorf("%s/2%s shows %+v, want b", at, query, one)
		}
		if got := r.want(200, "DELETE", "/"+addr+"/messages/head", ""); got.body != "a" {
			t.Errorf("received %q from %s, want a", got.body, addr)
		}
		r.want(204, "DELETE", at+"/4"+query, "")
		var moved broker.Redriven
		r.want(200, "POST", at+"/redrive"+query, `{"to":"elsewhere","max":1}`).into(t, &moved)
		if moved.Moved != 1 {
			t.Errorf("moved %+v elsewhere, want 1", moved)
		}
		r.want(200, "POST", at+"/redrive"+query, "").into(t, &moved)
		if moved.Moved != 1 {
			t.Errorf("moved %+v back, want 1", moved)
		}
		r.want(200, "DELETE", at+query, "")
	}
	if c := r.counts("t"); c.Dead+c.TransferDead != 0 {
		t.Errorf("the topic has %+v, want no dead letters", c)
	}
	if c := r.counts("elsewhere"); c.Active != 2 {
		t.Errorf("elsewhere are %d, want 2", c.Active)
	}
	for rule, status := range map[string]int{"sender": 403, "listener": 200} {
		if got := r.as(rule, "GET", apiRoot+"/topics/t/deadletters", ""); got.status != status {
			t.Errorf("%s: %d, want %d", rule, got.status, status)
		}
	}
}

// B3: the parameter for transfer dead letters is in the document.
func TestTransferDeadLettersAreDocumented(t *testing.T) {
	r := start(t)
	for path, ops := range r.doc.Paths {
		if !strings.Contains(path, "/deadletters") {
			continue
		}
		for method, op := range ops {
			found := false
			for _, p := range op.Parameters {
				found = found || p.Name == "transfer"
			}
			if !found {
				t.Errorf("%s %s has no parameter transfer", method, path)
			}
		}
	}
}
