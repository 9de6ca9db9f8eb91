// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/entity"
)

const apiVersion = "?api-version=2021-05"

// entry wraps a description as clients do.
func entry(description string) string {
	return `<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">` + description + `</content></entry>`
}

// Requests are read by namespace: the prefixes are the client's own.
func TestATOMReadsAnyPrefix(t *testing.T) {
	r := start(t)
	r.topic("t", entity.Subscription{Name: "s"})
	r.want(201, "PUT", "/t/Subscriptions/s/Rules/r"+apiVersion, `<?xml version="1.0"?>
		<a:entry xmlns:a="http://www.w3.org/2005/Atom"><a:content type="application/xml">
		<z:RuleDescription xmlns:z="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect" xmlns:q="http://www.w3.org/2001/XMLSchema-instance">
		<z:Name>ignored</z:Name><z:Action q:type="EmptyRuleAction"/>
		<z:Filter q:type="z:SqlFilter" type="Other"><z:SqlExpression>a = @b</z:SqlExpression><z:Parameters>
		<z:KeyValueOfstringanyType><z:Key>@b</z:Key><z:Value xmlns:l="http://www.w3.org/2001/XMLSchema" q:type="l:long">5</z:Value></z:KeyValueOfstringanyType>
		</z:Parameters></z:Filter></z:RuleDescription></a:content></a:entry>`)
	rule, err := r.b.Rule("t", "s", "r")
	if err != nil || rule.Filter.SQL != "a = @b" || rule.Filter.Parameters["@b"].Any() != int64(5) {
		t.Errorf("rule: %+v, %v", rule, err)
	}
	got := r.want(200, "GET", "/T/subscriptions/S/rules/R"+apiVersion, "")
	for _, want := range []string{
		`<title type="text">r</title>`, `<CreatedAt>` + rule.CreatedAt.Format("2006-01-02T15:04:05"), `<Filter i:type="SqlFilter">`, `<Action i:type="EmptyRuleAction"></Action>`,
		`<Value xmlns:d6p1="http://www.w3.org/2001/XMLSchema" i:type="d6p1:int">5</Value>`, `/T/Subscriptions/S/Rules/r?`,
	} {
		if !strings.Contains(got.body, want) {
			t.Errorf("%s lacks %s", got.body, want)
		}
	}
}

func TestATOMRefusesBadXML(t *testing.T) {
	r := start(t)
	bomb := `<!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>` + entry(`<QueueDescription><UserMetadata>&b;</UserMetadata></QueueDescription>`)
	for what, tt := range map[string]struct {
		body   string
		status int
	}{
		"bomb":              {bomb, 400},
		"document type":     {`<!DOCTYPE entry>` + entry(`<QueueDescription/>`), 400},
		"entity":            {entry(`<QueueDescription><UserMetadata>&unknown;</UserMetadata></QueueDescription>`), 400},
		"deep":              {strings.Repeat("<a>", 1000) + strings.Repeat("</a>", 1000), 400},
		"many":              {"<a>" + strings.Repeat("<b/>", 100_000) + "</a>", 400},
		"large":             {entry("<QueueDescription>" + strings.Repeat(" ", 1<<20) + "</QueueDescription>"), 413},
		"cut":               {entry(`<QueueDescription>`), 400},
		"empty":             {"", 400},
		"text":              {"hello", 400},
		"json":              {`{"name":"q"}`, 400},
		"two":               {entry(`<QueueDescription/>`) + entry(`<QueueDescription/>`), 400},
		"feed":              {`<feed xmlns="http://www.w3.org/2005/Atom"/>`, 400},
		"no content":        {`<entry xmlns="http://www.w3.org/2005/Atom"/>`, 400},
		"rule":              {entry(`<RuleDescription/>`), 400},
		"another charset":   {`<?xml version="1.0" encoding="klingon"?>` + entry(`<QueueDescription/>`), 400},
		"bad duration":      {entry(`<QueueDescription><LockDuration>soon</LockDuration></QueueDescription>`), 400},
		"bad number":        {entry(`<QueueDescription><MaxDeliveryCount>99999999999</MaxDeliveryCount></QueueDescription>`), 400},
		"forwards to self":  {entry(`<QueueDescription><ForwardTo>q</ForwardTo></QueueDescription>`), 400},
		"unknown right":     {entry(`<QueueDescription><AuthorizationRules><AuthorizationRule><KeyName>k</KeyName><Rights><AccessRights>Fly</AccessRights></Rights></AuthorizationRule></AuthorizationRules></QueueDescription>`), 400},
		"unknown status":    {entry(`<QueueDescription><Status>Sleepy</Status></QueueDescription>`), 400},
		"partition of much": {entry(`<QueueDescription><EnablePartitioning>true</EnablePartitioning><MaxSizeInMegabytes>9000000000000000000</MaxSizeInMegabytes></QueueDescription>`), 400},
	} {
		got := r.do("PUT", "/q"+apiVersion, tt.body)
		var e struct {
			XMLName xml.Name `xml:"Error"`
			Code    int
			Detail  string
		}
		if err := xml.Unmarshal([]byte(got.body), &e); err != nil || got.status != tt.status || e.Code != tt.status || e.Detail == "" {
			t.Errorf("%s: %d %s, want an error of %d", what, got.status, got.body, tt.status)
		}
	}
	if len(r.b.Queues()) != 0 {
		t.Errorf("queues: %v, want none", r.b.Queues())
	}
}

// What ATOM does not know survives an update by its clients.
func TestATOMUpdateKeepsOurs(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q", MaxMessageCount: 5, Policy: []byte(`{"discipline":"strict"}`), RequiresSession: true, UserMetadata: "x"})
	r.want(200, "PUT", "/q"+apiVersion, entry(`<QueueDescription><MaxDeliveryCount>4</MaxDeliveryCount></QueueDescription>`), "If-Match", "*")
	q, err := r.b.Queue("q")
	if err != nil || q.MaxMessageCount != 5 || len(q.Policy) == 0 || !q.RequiresSession || q.MaxDeliveryCount != 4 || q.UserMetadata != "" {
		t.Errorf("queue: %+v, %v, want only what ATOM knows replaced", q, err)
	}
}

// A caller that may manage one entity cannot make it forward to another.
func TestATOMForwardingNeedsARightThere(t *testing.T) {
	r := start(t)
	key := entity.AuthorizationRules{{KeyName: "mine", Rights: []entity.Right{entity.Manage}, PrimaryKey: "mine key"}}
	r.queue(entity.Queue{Name: "q", AuthorizationRules: key})
	r.queue(entity.Queue{Name: "target"})
	sign := func(name, path string) string {
		return access.SignToken(access.Rule{Name: name, PrimaryKey: name + " key"}, "https://localhost/"+path, time.Now().Add(time.Hour))
	}
	forward := entry(`<QueueDescription><ForwardTo>sb://localhost/target</ForwardTo></QueueDescription>`)
	for what, tt := range map[string]struct {
		token, second string
		status        int
	}{
		"alone":              {sign("mine", "q"), "", 401},
		"with its own again": {sign("mine", "q"), sign("mine", "q"), 401},
		"with a bad one":     {sign("mine", "q"), "nonsense", 401},
		"with a second":      {sign("mine", "q"), sign("sender", "target"), 200},
		"with the root":      {sign("root", ""), "", 200},
	} {
		headers := []string{"If-Match", "*", "Authorization", tt.token}
		if tt.second != "" {
			headers = append(headers, "ServiceBusSupplementaryAuthorization", tt.second)
		}
		if got := r.as("nobody", "PUT", "/q"+apiVersion, forward, headers...); got.status != tt.status {
			t.Errorf("%s: %d %s, want %d", what, got.status, got.body, tt.status)
		}
		q, _ := r.b.Queue("q")
		q.ForwardTo, q.AuthorizationRules = "", key
		if _, err := r.b.UpdateQueue(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
}

func TestATOMFeeds(t *testing.T) {
	r := start(t)
	for i := range 5 {
		r.queue(entity.Queue{Name: fmt.Sprintf("a/q%d", i)})
	}
	got := r.want(200, "GET", "/$Resources/queues"+apiVersion+"&%24top=2&%24skip=2", "")
	var f struct {
		XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
		Links   []struct {
			Rel  string `xml:"rel,attr"`
			Href string `xml:"href,attr"`
		} `xml:"link"`
		Entries []struct {
			Title string `xml:"title"`
			ID    string `xml:"id"`
		} `xml:"entry"`
	}
	if err := xml.Unmarshal([]byte(got.body), &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Entries) != 2 || f.Entries[0].Title != "a/q2" || !strings.Contains(f.Entries[0].ID, "/a/q2?") {
		t.Errorf("entries: %+v", f.Entries)
	}
	if len(f.Links) != 2 || f.Links[1].Rel != "next" || !strings.HasSuffix(f.Links[1].Href, "&%24skip=4&%24top=2") {
		t.Errorf("links: %+v", f.Links)
	}
	for query, links := range map[string]int{"&%24skip=4&%24top=2": 1, "&%24skip=99": 1, "": 1, "&%24top=4": 2} {
		got := r.want(200, "GET", "/$Resources/Queues"+apiVersion+query, "")
		if n := strings.Count(strings.Split(got.body, "<entry")[0], "<link"); n != links {
			t.Errorf("%q: %d links, want %d", query, n, links)
		}
	}
	for _, bad := range []string{"&%24top=x", "&%24top=1001", "&%24skip=-1"} {
		r.want(400, "GET", "/$Resources/Queues"+apiVersion+bad, "")
	}
	r.want(404, "GET", "/none/Subscriptions"+apiVersion, "")
	r.want(404, "GET", "/"+apiVersion, "")
	r.want(405, "DELETE", "/$Resources/Queues"+apiVersion, "")
	r.want(405, "PATCH", "/a/q1"+apiVersion, "")
}

// An entity may be called what another interface is called.
func TestATOMReachesEveryName(t *testing.T) {
	r := start(t)
	for _, name := range []string{"metrics", "api", "api/v1/queues", "messages"} {
		r.want(201, "PUT", "/"+name+apiVersion, entry(`<QueueDescription/>`))
		r.want(200, "GET", "/"+name+apiVersion, "")
	}
	r.want(201, "POST", "/metrics/messages", "x")
}

func FuzzATOM(f *testing.F) {
	r := start(f)
	r.topic("t", entity.Subscription{Name: "s"})
	f.Add("q", entry(`<QueueDescription xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><LockDuration>PT1M</LockDuration></QueueDescription>`))
	f.Add("t/Subscriptions/s/Rules/r", entry(`<RuleDescription xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><Filter i:type="CorrelationFilter"><Properties><KeyValueOfstringanyType><Key>a</Key><Value i:type="d:int">5</Value></KeyValueOfstringanyType></Properties></Filter></RuleDescription>`))
	f.Add("t/Subscriptions/s/Rules/", entry(`<RuleDescription xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><Filter i:nil="true"/><Action i:type="SqlRuleAction"><SqlExpression>SET a=1</SqlExpression></Action></RuleDescription>`))
	f.Add("t/Subscriptions/x", entry(`<SubscriptionDescription><DefaultRuleDescription><Name>n</Name></DefaultRuleDescription></SubscriptionDescription>`))
	f.Fuzz(func(t *testing.T, path, body string) {
		r := *r
		r.t = t
		for _, p := range []string{"/" + escapePath(path), "/q", "/t", "/t/Subscriptions/s", "/t/Subscriptions/s/Rules/r"} {
			got := r.do("PUT", p+apiVersion, body)
			if got.status >= 500 {
				t.Fatalf("PUT %s %q: %d %s", p, body, got.status, got.body)
			}
			if err := xml.Unmarshal([]byte(got.body), new(struct{ XMLName xml.Name })); err != nil && !strings.Contains(p, "messages") {
				t.Fatalf("PUT %s %q: %q: %v", p, body, got.body, err)
			}
		}
		if n := len(r.b.Queues()); n > 50 {
			for _, q := range r.b.Queues() {
				_ = r.b.DeleteQueue(t.Context(), q.Name)
			}
		}
	})
}
