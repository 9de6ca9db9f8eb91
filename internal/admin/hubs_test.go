// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/vfs"
)

func (r *rig) hub(h entity.Hub) {
	r.t.Helper()
	if _, err := r.b.CreateHub(r.t.Context(), h); err != nil {
		r.t.Fatal(err)
	}
}

// publish stores batches of n events in a partition and waits until they are durable.
func (r *rig) publish(addr string, counts ...int) {
	r.t.Helper()
	p, err := r.b.OpenPublisher(addr)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, n := range counts {
		done := make(chan error, 1)
		p.Publish(broker.Events{Raw: []byte(strings.Repeat("x", 10*n)), Count: n}, func(err error) { done <- err })
		if err := <-done; err != nil {
			r.t.Fatal(err)
		}
	}
}

// read opens a reader at the beginning, with an epoch, until the test ends, and has it
// read one batch of several.
func (r *rig) read(addr, name string, epoch int64) {
	r.t.Helper()
	r.readFrom(addr, broker.EventReaderOptions{Name: name, Epoch: &epoch, From: stream.Earliest()})
}

func (r *rig) readFrom(addr string, o broker.EventReaderOptions) {
	r.t.Helper()
	reader, err := r.b.OpenEventReader(r.t.Context(), addr, o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(reader.Close)
	_, err = reader.Next(r.t.Context(), 1)
	if err == nil {
		err = reader.Wait(r.t.Context()) // says to the hub how far it is
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestHubFromCreationToDeletion(t *testing.T) {
	r := start(t)
	const one = apiRoot + "/hubs/site%2Fclicks"
	var h HubEntity
	r.want(201, "POST", apiRoot+"/hubs", `{"name":"site/clicks","consumerGroups":[{"name":"b"}]}`).into(t, &h)
	if h.Definition.PartitionCount != 4 || h.Definition.MessageRetention.String() != "1d" || len(h.Runtime.Partitions) != 4 ||
		h.Runtime.Partitions[3].ID != "3" || h.Runtime.Partitions[3].First != 0 || h.Runtime.Partitions[3].Last != -1 {
		t.Errorf("created %+v", h)
	}
	r.want(409, "POST", apiRoot+"/hubs", `{"name":"Site/Clicks"}`)
	r.want(200, "PATCH", one, `{"messageRetention":"1h","partitionCount":6,"status":"SendDisabled"}`)
	r.want(200, "PUT", one, `{"maxPartitionSizeInMegabytes":7}`).into(t, &h)
	if h.Definition.PartitionCount != 6 || h.Definition.MessageRetention.String() != "1d" || h.Definition.Status != entity.Active ||
		h.Definition.MaxPartitionSizeInMegabytes != 7 || len(h.Definition.ConsumerGroups) != 1 {
		t.Errorf("put %+v, want defaults, and partitions and groups as they were", h.Definition)
	}
	r.publish("site/clicks/Partitions/5", 3, 2)
	r.publish("site/clicks/Partitions/0", 1)
	r.read("site/clicks/ConsumerGroups/b/Partitions/5", "one", 7)
	r.read("site/clicks/ConsumerGroups/$default/Partitions/5", "two", 1)
	r.want(200, "GET", one, "").into(t, &h)
	rt := h.Runtime
	p := rt.Partitions[5]
	if rt.Events != 6 || rt.Bytes <= 0 || rt.In.Events != 6 || rt.Readers != 2 || rt.LastEvent == nil || rt.CreatedAt.IsZero() || rt.Unavailable != "" {
		t.Errorf("the figures are %+v", rt)
	}
	if p.First != 0 || p.Last != 4 || p.In.Events != 5 || p.Out.Events != 6 || len(p.Readers) != 2 || p.LastEvent == nil {
		t.Errorf("partition 5 is %+v", p)
	}
	i := slices.IndexFunc(p.Readers, func(r broker.ReaderRuntime) bool { return r.Name == "one" })
	if i < 0 || p.Readers[i].Group != "b" || p.Readers[i].Epoch == nil || *p.Readers[i].Epoch != 7 || p.Readers[i].Next != 3 || p.Readers[i].LagEvents != 2 {
		t.Errorf("the readers are %+v", p.Readers)
	}
	if len(rt.Groups) != 2 || rt.Groups[0].Name != "$Default" || rt.Groups[0].Readers != 1 || rt.Groups[1].LagEvents != 2 || rt.Groups[1].Partitions != 1 {
		t.Errorf("the groups are %+v", rt.Groups)
	}
	var one5 broker.PartitionRuntime
	r.want(200, "GET", one+"/partitions/5", "").into(t, &one5)
	if one5.Last != 4 {
		t.Errorf("partition 5 alone is %+v", one5)
	}
	var all list[HubEntity]
	r.want(200, "GET", apiRoot+"/hubs?prefix=SITE", "").into(t, &all)
	if all.Total != 1 || all.Items[0].Runtime.Events != 6 || all.Items[0].Runtime.Partitions != nil {
		t.Errorf("the list is %+v", all)
	}
	var ns Namespace
	r.want(200, "GET", apiRoot+"/namespace", "").into(t, &ns)
	if ns.Hubs != 1 || ns.Queues != 0 {
		t.Errorf("the namespace is %+v", ns)
	}
	r.want(204, "DELETE", one, "")
	r.want(404, "GET", one, "")
	r.want(201, "PUT", one, `{}`).into(t, &h)
	if h.Runtime.Events != 0 {
		t.Errorf("a new hub of the same name has %d events", h.Runtime.Events)
	}
}

func TestConsumerGroups(t *testing.T) {
	r := start(t)
	r.hub(entity.Hub{Name: "h", PartitionCount: 2})
	const groups = apiRoot + "/hubs/h/groups"
	var g GroupEntity
	r.want(201, "POST", groups, `{"name":"a","userMetadata":"ours"}`).into(t, &g)
	if g.Definition.UserMetadata != "ours" || g.Definition.CreatedAt.IsZero() || g.Runtime.Name != "a" {
		t.Errorf("created %+v", g)
	}
	r.want(409, "POST", groups, `{"name":"A"}`)
	r.want(201, "PUT", groups+"/b", `{}`)
	r.want(200, "PUT", groups+"/$default", `{"userMetadata":"all"}`)
	r.publish("h/Partitions/0", 4, 4)
	r.publish("h/Partitions/1", 1, 1)
	r.read("h/ConsumerGroups/A/Partitions/0", "x", 1)
	r.read("h/ConsumerGroups/A/Partitions/1", "y", 1)
	r.want(200, "GET", groups+"/a", "").into(t, &g)
	if g.Runtime.Readers != 2 || g.Runtime.Partitions != 2 || g.Runtime.LagEvents != 5 {
		t.Errorf("a is %+v", g.Runtime)
	}
	// Of several readers of a partition the furthest counts.
	r.publish("h/Partitions/0", 2, 1)
	r.readFrom("h/ConsumerGroups/b/Partitions/0", broker.EventReaderOptions{Name: "ahead", From: stream.FromSeq(4)})
	r.readFrom("h/ConsumerGroups/b/Partitions/0", broker.EventReaderOptions{Name: "behind", From: stream.Earliest()})
	var b GroupEntity
	r.want(200, "GET", groups+"/b", "").into(t, &b)
	if b.Runtime.Readers != 2 || b.Runtime.Partitions != 1 || b.Runtime.LagEvents != 3 {
		t.Errorf("b is %+v", b.Runtime)
	}
	var all list[GroupEntity]
	r.want(200, "GET", groups, "").into(t, &all)
	if all.Total != 3 || all.Items[0].Definition.UserMetadata != "all" || all.Items[1].Runtime.LagEvents != 8 || all.Items[0].Runtime.Readers != 0 {
		t.Errorf("the list is %+v", all)
	}
	r.want(204, "DELETE", groups+"/a", "")
	r.want(404, "GET", groups+"/a", "")
}

// meanwhileBody does something before a body is read.
type meanwhileBody struct {
	io.Reader
	before func()
}

func (b *meanwhileBody) Read(p []byte) (int, error) {
	if b.before != nil {
		b.before()
		b.before = nil
	}
	return b.Reader.Read(p)
}

// A change of a hub whose body is slow to come does not undo what was done meanwhile.
func TestPatchKeepsGroupsThatCameMeanwhile(t *testing.T) {
	r := start(t)
	r.hub(entity.Hub{Name: "h", ConsumerGroups: []entity.ConsumerGroup{{Name: "a"}}})
	body := &meanwhileBody{strings.NewReader(`{"messageRetention":"2h"}`), func() {
		if _, err := r.b.CreateConsumerGroup(t.Context(), "h", entity.ConsumerGroup{Name: "b"}); err != nil {
			t.Error(err)
		}
	}}
	req := httptest.NewRequestWithContext(t.Context(), "PATCH", "http://localhost"+apiRoot+"/hubs/h", body)
	req.SetBasicAuth("root", "root key")
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	if h, _ := r.b.Hub("h"); w.Code != 200 || len(h.ConsumerGroups) != 2 || h.MessageRetention.String() != "2h" {
		t.Errorf("%d %s; the hub is %+v", w.Code, w.Body, h)
	}
}

func TestBadRequestsOfHubs(t *testing.T) {
	r := start(t)
	r.hub(entity.Hub{Name: "h", PartitionCount: 2})
	r.queue(entity.Queue{Name: "q"})
	r.topic("t", entity.Subscription{Name: "s"})
	for _, tt := range []struct {
		method, path, body string
		status             int
		code, text         string
	}{
		{"POST", "/hubs", `{"name":"a","partitionCount":1025,"messageRetention":"1s","status":"Off"}`, 400, "bad_request", "partitionCount"},
		{"POST", "/hubs", `{"name":"a","partitionCount":1025,"messageRetention":"1s"}`, 400, "invalid", "messageRetention"},
		{"POST", "/hubs", `{"name":"a","partitions":2}`, 400, "bad_request", "unknown field"},
		{"POST", "/hubs", `{"name":"a/Partitions/0"}`, 400, "invalid", "reserved"},
		{"POST", "/hubs", `{"name":"a","consumerGroups":[{"name":"x"},{"name":"X"}]}`, 400, "invalid", "consumerGroups[1].name"},
		{"POST", "/hubs", `{"name":"Q"}`, 409, "exists", "is a queue"},
		{"POST", "/queues", `{"name":"H"}`, 409, "exists", "is a hub"},
		{"PUT", "/queues/h", `{}`, 409, "exists", "is a hub"},
		{"PUT", "/hubs/t", `{}`, 409, "exists", "is a topic"},
		{"GET", "/hubs/none", ``, 404, "not_found", "none"},
		{"GET", "/hubs/q", ``, 404, "not_found", "it is a queue"},
		{"GET", "/queues/h", ``, 404, "not_found", "it is a hub"},
		{"DELETE", "/queues/h", ``, 404, "not_found", "it is a hub"},
		{"DELETE", "/topics/h", ``, 404, "not_found", "it is a hub"},
		{"PATCH", "/hubs/h", `{"partitionCount":1}`, 400, "invalid", "cannot be decreased"},
		{"PUT", "/hubs/h", `{"partitionCount":1}`, 400, "invalid", "cannot be decreased"},
		{"PATCH", "/hubs/h", `{"name":"other"}`, 400, "bad_request", "path"},
		{"PATCH", "/hubs/none", `{}`, 404, "not_found", ""},
		{"GET", "/hubs/h/partitions/2", ``, 404, "not_found", "0 to 1"},
		{"GET", "/hubs/h/partitions/-1", ``, 404, "not_found", "0 to 1"},
		{"GET", "/hubs/h/partitions/x", ``, 404, "not_found", "0 to 1"},
		{"GET", "/hubs/h%2FPublishers%2Fp/partitions/0", ``, 404, "not_found", ""},
		{"GET", "/hubs/h%2FPartitions%2F0/partitions/0", ``, 404, "not_found", ""},
		{"GET", "/hubs/h%2FConsumerGroups%2F$Default", ``, 404, "not_found", ""},
		{"GET", "/hubs/none/groups", ``, 404, "not_found", ""},
		{"GET", "/hubs/q/groups", ``, 404, "not_found", "it is a queue"},
		{"GET", "/hubs/h/groups/none", ``, 404, "not_found", "none"},
		{"PUT", "/hubs/none/groups/g", `{}`, 404, "not_found", ""},
		{"PUT", "/hubs/h/groups/g", `{"name":"other"}`, 400, "bad_request", "path"},
		{"POST", "/hubs/h/groups", `{"name":"$other"}`, 400, "invalid", "name"},
		{"POST", "/hubs/h/groups", `{"name":"$Default"}`, 409, "exists", ""},
		{"DELETE", "/hubs/h/groups/$Default", ``, 400, "not_allowed", "cannot be deleted"},
		{"DELETE", "/hubs/h/groups/none", ``, 404, "not_found", ""},
		{"POST", "/queues", `{"name":"f","forwardTo":"h"}`, 400, "invalid", "event hub"},
		{"PATCH", "/topics/t/subscriptions/s", `{"forwardDeadLetteredMessagesTo":"h"}`, 400, "invalid", "event hub"},
		{"GET", "/queues/h/messages", ``, 400, "not_allowed", "event hub"},
		{"POST", "/queues/h/messages", `{"body":"x"}`, 400, "not_allowed", "event hub"},
		{"DELETE", "/queues/h/messages", ``, 400, "not_allowed", "event hub"},
		{"PUT", "/queues/h/paused", `{"sending":true}`, 400, "not_allowed", "event hub"},
		{"GET", "/policies/h", ``, 400, "not_allowed", "event hub"},
		{"PUT", "/policies/h", `{}`, 400, "not_allowed", "event hub"},
		{"GET", "/demand/h", ``, 400, "not_allowed", "event hub"},
		{"POST", "/queues/q/deadletters/redrive", `{"to":"h"}`, 400, "not_allowed", "event hub"},
		{"POST", "/queues/h/deadletters/redrive", `{}`, 404, "not_found", "an event hub has no dead letters"},
	} {
		got := r.do(tt.method, apiRoot+tt.path, tt.body)
		if got.status != tt.status || got.code() != tt.code || !strings.Contains(got.body, tt.text) {
			t.Errorf("%s %s %.60s: %d %s, want %d %s with %q", tt.method, tt.path, tt.body, got.status, got.body, tt.status, tt.code, tt.text)
		}
	}
	for _, tt := range []struct{ method, path string }{{"POST", "/h/messages"}, {"DELETE", "/h/messages/head?timeout=0"}} {
		if got := r.do(tt.method, tt.path, "x"); got.status != 400 || !strings.Contains(got.body, "event hub") {
			t.Errorf("%s %s: %d %s, want 400", tt.method, tt.path, got.status, got.body)
		}
	}
	for o := range r.b.AllObjectives(t.Context()) {
		if o.Entity == "h" {
			t.Error("a hub is measured as a queue")
		}
	}
	if h, err := r.b.Hub("h"); err != nil || h.PartitionCount != 2 || len(h.ConsumerGroups) != 0 {
		t.Errorf("the hub afterwards: %+v, %v", h, err)
	}
}

// A hub whose events cannot be reached is shown, can be changed and deleted.
func TestHubThatIsNotAvailable(t *testing.T) {
	disk := vfs.NewMem()
	b, err := brokertest.Open(t.Context(), disk, queueserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateHub(t.Context(), entity.Hub{Name: "h"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	logs, err := disk.List("hubs")
	if err != nil || len(logs) != 1 {
		t.Fatalf("the logs are %v, %v", logs, err)
	}
	files, err := disk.List("hubs/" + logs[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := disk.Remove("hubs/" + logs[0] + "/" + file); err != nil {
			t.Fatal(err)
		}
	}
	if err := disk.Remove("hubs/" + logs[0]); err != nil {
		t.Fatal(err)
	}
	r := startOn(t, brokertest.StartOn(t, disk), func(k *access.RuleAuthority) access.Authority { return k })
	var h HubEntity
	r.want(200, "GET", apiRoot+"/hubs/h", "").into(t, &h)
	if h.Runtime.Unavailable == "" || len(h.Runtime.Groups) != 1 || h.Runtime.Partitions != nil {
		t.Errorf("shown as %+v", h.Runtime)
	}
	r.want(200, "GET", apiRoot+"/hubs", "")
	if got := r.do("GET", apiRoot+"/hubs/h/partitions/0", ""); got.status != 503 || got.code() != "unavailable" {
		t.Errorf("a partition: %d %s, want 503", got.status, got.body)
	}
	if got := r.want(200, "GET", "/metrics", ""); !strings.Contains(got.body, `triagemq_hub_available{hub="h"} 0`) {
		t.Error("the metrics do not tell")
	}
	r.want(204, "DELETE", apiRoot+"/hubs/h", "")
}

func TestHubMetrics(t *testing.T) {
	r := start(t)
	r.hub(entity.Hub{Name: "h", PartitionCount: 2, ConsumerGroups: []entity.ConsumerGroup{{Name: "g"}}})
	r.publish("h/Partitions/1", 3, 2)
	r.read("h/ConsumerGroups/G/Partitions/1", "x", 1)
	got := r.want(200, "GET", "/metrics", "").body
	for _, want := range []string{
		`triagemq_entities{kind="hub"} 1`,
		`triagemq_hub_available{hub="h"} 1`,
		`triagemq_hub_first_sequence_number{hub="h",partition="1"} 0`,
		`triagemq_hub_last_sequence_number{hub="h",partition="0"} -1`,
		`triagemq_hub_last_sequence_number{hub="h",partition="1"} 4`,
		`triagemq_hub_bytes{hub="h",partition="1"} 50`,
		`triagemq_hub_readers{hub="h",partition="1"} 1`,
		`triagemq_hub_in_events_total{hub="h",partition="1"} 5`,
		`triagemq_hub_in_bytes_total{hub="h",partition="1"} 50`,
		`triagemq_hub_out_events_total{hub="h",partition="1"} 3`,
		`triagemq_hub_out_bytes_total{hub="h",partition="1"} 30`,
		`triagemq_hub_group_readers{group="g",hub="h"} 1`,
		`triagemq_hub_group_partitions{group="g",hub="h"} 1`,
		`triagemq_hub_group_lag_events{group="g",hub="h"} 2`,
		`triagemq_hub_group_lag_seconds{group="g",hub="h"} `,
		`triagemq_hub_group_readers{group="$Default",hub="h"} 0`,
		`triagemq_hubs_omitted 0`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if strings.Contains(got, `triagemq_hub_group_lag_events{group="$Default"`) {
		t.Error("a group without readers has a lag")
	}
}

func TestHubsOverATOM(t *testing.T) {
	r := start(t)
	got := r.want(201, "PUT", "/site/h"+apiVersion, entry(`<EventHubDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">`+
		`<MessageRetentionInDays>3</MessageRetentionInDays><PartitionCount>2</PartitionCount><UserMetadata>a &amp; b</UserMetadata></EventHubDescription>`)).body
	for _, want := range []string{
		`<title type="text">site/h</title>`, `<EventHubDescription `, `<MessageRetentionInDays>3</MessageRetentionInDays>`, `<PartitionCount>2</PartitionCount>`,
		`<PartitionIds xmlns:d2p1="http://schemas.microsoft.com/2003/10/Serialization/Arrays"><d2p1:string>0</d2p1:string><d2p1:string>1</d2p1:string></PartitionIds>`,
		`<Status>Active</Status>`, `<CreatedAt>2`, `<UpdatedAt>2`, `<UserMetadata>a &amp; b</UserMetadata>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	if err := xml.Unmarshal([]byte(got), new(struct{})); err != nil {
		t.Errorf("not XML: %v", err)
	}
	// What was read and is put again changes nothing, whatever the tool does not know.
	if _, err := r.b.UpdateHub(t.Context(), entity.Hub{Name: "site/h", MessageRetention: entity.Duration(90 * 60e9), MaxPartitionSizeInMegabytes: 5}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.b.CreateConsumerGroup(t.Context(), "site/h", entity.ConsumerGroup{Name: "kept"}); err != nil {
		t.Fatal(err)
	}
	before, _ := r.b.Hub("site/h")
	r.want(200, "PUT", "/site/h"+apiVersion, r.want(200, "GET", "/site/h"+apiVersion, "").body, "If-Match", "*")
	if after, _ := r.b.Hub("site/h"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("put again: %+v, want %+v", after, before)
	}
	hub := func(text string) string { return entry("<EventHubDescription>" + text + "</EventHubDescription>") }
	r.want(200, "PUT", "/site/h"+apiVersion, hub("<PartitionCount>3</PartitionCount><MessageRetentionInDays>7</MessageRetentionInDays>"), "If-Match", "*")
	if after, _ := r.b.Hub("site/h"); after.PartitionCount != 3 || after.MessageRetention.String() != "7d" {
		t.Errorf("changed to %+v", after)
	}

	group := entry(`<ConsumerGroupDescription><UserMetadata>ours</UserMetadata></ConsumerGroupDescription>`)
	got = r.want(201, "PUT", "/site/h/ConsumerGroups/g"+apiVersion, group).body
	for _, want := range []string{`<title type="text">g</title>`, `<ConsumerGroupDescription `, `<UserMetadata>ours</UserMetadata>`, `<CreatedAt>2`, `/site/h/ConsumerGroups/g?`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	r.want(200, "PUT", "/site/h/consumergroups/g"+apiVersion, group, "If-Match", "*")
	r.want(200, "GET", "/site/h/consumergroups/$default"+apiVersion, "")
	if got := r.want(200, "GET", "/site/h/consumergroups"+apiVersion, "").body; strings.Count(got, "<entry ") != 3 {
		t.Errorf("the groups are %s", got)
	}
	if got := r.want(200, "GET", "/site/h/consumergroups"+apiVersion+"&$skip=1&$top=1", "").body; strings.Count(got, "<entry ") != 1 || !strings.Contains(got, `rel="next"`) {
		t.Errorf("a page of groups is %s", got)
	}
	if got := r.want(200, "GET", "/$Resources/EventHubs"+apiVersion, "").body; strings.Count(got, "<entry ") != 1 {
		t.Errorf("the hubs are %s", got)
	}
	if got := r.want(200, "GET", "/$Resources/Queues"+apiVersion, "").body; strings.Contains(got, "<entry ") {
		t.Errorf("the queues are %s", got)
	}
	r.publish("site/h/Partitions/1", 3)
	if got := r.want(200, "GET", "/site/h/consumergroups/g/partitions"+apiVersion, "").body; strings.Count(got, "<entry ") != 3 {
		t.Errorf("the partitions are %s", got)
	}
	got = r.want(200, "GET", "/site/h/consumergroups/g/partitions/1"+apiVersion, "").body
	for _, want := range []string{`<SizeInBytes>30</SizeInBytes>`, `<BeginSequenceNumber>0<`, `<EndSequenceNumber>2<`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	r.queue(entity.Queue{Name: "q"})
	for _, tt := range []struct {
		status             int
		method, path, body string
		update             bool
		text               string
	}{
		{404, "GET", "/none/consumergroups", "", false, "none"},
		{404, "GET", "/site/h/consumergroups/none", "", false, "none"},
		{404, "GET", "/site/h/consumergroups/none/partitions/0", "", false, "none"},
		{404, "GET", "/site/h/consumergroups/g/partitions/3", "", false, "partition"},
		{404, "GET", "/q/consumergroups", "", false, "it is a queue"},
		{404, "GET", "/site/h/Subscriptions", "", false, "it is a hub"},
		{404, "PUT", "/q/consumergroups/g", group, false, "it is a queue"},
		{404, "PUT", "/site/h/consumergroups/none", group, true, "none"},
		{404, "PUT", "/none", hub(""), true, "none"},
		{409, "PUT", "/site/h", hub(""), false, "is a hub"},
		{409, "PUT", "/q", hub(""), false, "is a queue"},
		{409, "PUT", "/site/h", entry("<QueueDescription/>"), false, "is a hub"},
		{404, "PUT", "/site/h", entry("<QueueDescription/>"), true, "it is a hub"},
		{409, "PUT", "/site/h/consumergroups/$Default", group, false, ""},
		{400, "PUT", "/site/h", hub("<PartitionCount>1</PartitionCount>"), true, "cannot be decreased"},
		{400, "PUT", "/x", hub("<PartitionCount>2000</PartitionCount><MessageRetentionInDays>-1</MessageRetentionInDays>"), false, "MessageRetentionInDays"},
		{400, "PUT", "/x", hub("<PartitionCount>99999999999</PartitionCount>"), false, "partitionCount"},
		{400, "PUT", "/x", hub("<MessageRetentionInDays>200000</MessageRetentionInDays>"), false, "MessageRetentionInDays"},
		{400, "PUT", "/site/h/consumergroups/x", hub(""), false, "does not belong"},
		{400, "PUT", "/x", group, false, "does not belong"},
		{405, "PUT", "/site/h/consumergroups", group, false, ""},
		{405, "PUT", "/site/h/consumergroups/g/partitions/0", group, false, ""},
		{405, "DELETE", "/site/h/consumergroups/g/partitions/0", "", false, ""},
		{400, "DELETE", "/site/h/consumergroups/$Default", "", false, "cannot be deleted"},
	} {
		var headers []string
		if tt.update {
			headers = []string{"If-Match", "*"}
		}
		if got := r.do(tt.method, tt.path+apiVersion, tt.body, headers...); got.status != tt.status || !strings.Contains(got.body, tt.text) {
			t.Errorf("%s %s %.80s: %d %s, want %d with %q", tt.method, tt.path, tt.body, got.status, got.body, tt.status, tt.text)
		}
	}
	if got := r.as("listener", "GET", "/site/h/consumergroups/g"+apiVersion, ""); got.status != 401 || !strings.Contains(got.body, "GetConsumerGroup") {
		t.Errorf("with the right to listen: %d %s", got.status, got.body)
	}
	r.want(200, "DELETE", "/site/h/consumergroups/g"+apiVersion, "")
	r.want(200, "DELETE", "/site/h"+apiVersion, "")
	r.want(404, "GET", "/site/h"+apiVersion, "")
}

// What is changed on a hub is followed at once by those who are connected to it.
func TestLiveHubFollowsChanges(t *testing.T) {
	r := start(t)
	const one = apiRoot + "/hubs/h"
	r.hub(entity.Hub{Name: "h", PartitionCount: 1})
	p, err := r.b.OpenPublisher("h")
	if err != nil {
		t.Fatal(err)
	}
	publish := func(size int) error {
		done := make(chan error, 1)
		p.Publish(broker.Events{Raw: make([]byte, size), Count: 1}, func(err error) { done <- err })
		return <-done
	}

	// Partitions are added under a publisher that uses each as soon as it sees it.
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() { // ends with stop, which the test closes
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err := publish(10); err != nil {
				stopped <- err
				return
			}
		}
	}()
	for n := 2; n <= 12; n++ {
		r.want(200, "PATCH", one, fmt.Sprintf(`{"partitionCount":%d}`, n))
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Errorf("publishing while partitions are added: %v", err)
	}
	for range 2 * 12 { // two for each: a reader below waits for its second
		if err := publish(10); err != nil {
			t.Fatal(err)
		}
	}
	var h HubEntity
	r.want(200, "GET", one, "").into(t, &h)
	for _, p := range h.Runtime.Partitions {
		if p.Last < 0 {
			t.Errorf("partition %s of %d got nothing", p.ID, len(h.Runtime.Partitions))
		}
	}

	r.want(200, "PATCH", one, `{"maxMessageSizeInKilobytes":102400}`)
	if got := p.MaxMessageSize(); got != 60<<20 {
		t.Errorf("batches of up to %d bytes are accepted, want what fits into the journal", got)
	}
	r.want(200, "PATCH", one, `{"maxMessageSizeInKilobytes":1}`)
	if err := publish(2 << 10); !errors.Is(err, broker.ErrTooLarge) {
		t.Errorf("a batch above a limit that was lowered: %v, want %v", err, broker.ErrTooLarge)
	}
	r.want(200, "PATCH", one, `{"maxMessageSizeInKilobytes":null,"status":"SendDisabled"}`)
	if err := publish(10); !errors.Is(err, broker.ErrDisabled) {
		t.Errorf("sending to a hub that was disabled: %v, want %v", err, broker.ErrDisabled)
	}
	if _, err := r.b.OpenPublisher("h"); !errors.Is(err, broker.ErrDisabled) {
		t.Errorf("a publisher to a hub that is disabled: %v, want %v", err, broker.ErrDisabled)
	}
	r.read("h/ConsumerGroups/$Default/Partitions/0", "x", 1)
	r.want(200, "PATCH", one, `{"status":"ReceiveDisabled"}`)
	if err := publish(10); err != nil {
		t.Errorf("sending to a hub whose receivers are disabled: %v", err)
	}
	if _, err := r.b.OpenEventReader(t.Context(), "h/ConsumerGroups/$Default/Partitions/0", broker.EventReaderOptions{From: stream.Earliest()}); !errors.Is(err, broker.ErrDisabled) {
		t.Errorf("reading a hub that is disabled: %v, want %v", err, broker.ErrDisabled)
	}

	r.want(200, "PATCH", one, `{"status":null}`)
	for range 12 * 30 {
		if err := publish(100 << 10); err != nil {
			t.Fatal(err)
		}
	}
	r.want(200, "PATCH", one, `{"maxPartitionSizeInMegabytes":1}`)
	r.want(200, "GET", one, "").into(t, &h)
	for _, p := range h.Runtime.Partitions {
		if p.Bytes > 1<<20 || p.First == 0 {
			t.Errorf("partition %s has %d bytes from %d on, want at most 1 MiB", p.ID, p.Bytes, p.First)
		}
	}
}

// Unknown parts of a hub, and what is not for this kind of address.
func TestAddressesOfHubs(t *testing.T) {
	r := start(t)
	r.hub(entity.Hub{Name: "h", PartitionCount: 2})
	r.queue(entity.Queue{Name: "q"})
	for addr, want := range map[string]error{
		"h": nil, "H/Partitions/1": nil, "h/Publishers/p": nil,
		"h/Partitions/2": broker.ErrPartition, "h/Partitions/-1": broker.ErrPartition, "h/Partitions/x": broker.ErrPartition, "h/Partitions/01": broker.ErrPartition,
		"none": broker.ErrNotFound, "none/Partitions/0": broker.ErrNotFound, "q": broker.ErrNotAllowed, "q/Partitions/0": broker.ErrNotFound,
		"h/ConsumerGroups/$Default": broker.ErrNotAllowed, "h/ConsumerGroups/none": broker.ErrNotFound, "h/$DeadLetterQueue": broker.ErrNotFound,
	} {
		if _, err := r.b.OpenPublisher(addr); !errors.Is(err, want) {
			t.Errorf("publish to %s: %v, want %v", addr, err, want)
		}
	}
	for addr, want := range map[string]error{
		"h/ConsumerGroups/$default/Partitions/1": nil,
		"h/ConsumerGroups/$Default/Partitions/2": broker.ErrPartition, "h/ConsumerGroups/none/Partitions/0": broker.ErrNotFound,
		"h": broker.ErrNotAllowed, "h/Partitions/0": broker.ErrNotAllowed, "h/ConsumerGroups/$Default": broker.ErrNotAllowed,
		"q/ConsumerGroups/$Default/Partitions/0": broker.ErrNotFound,
	} {
		reader, err := r.b.OpenEventReader(t.Context(), addr, broker.EventReaderOptions{From: stream.Earliest()})
		if !errors.Is(err, want) {
			t.Errorf("read %s: %v, want %v", addr, err, want)
		}
		if err == nil {
			reader.Close()
		}
	}
}

// A hub for which the disk has no space is refused, and leaves nothing behind.
func TestHubOnAFullDisk(t *testing.T) {
	disk := vfs.NewMem()
	r := startOn(t, brokertest.StartOn(t, disk), func(k *access.RuleAuthority) access.Authority { return k })
	r.hub(entity.Hub{Name: "before"})
	space, err := disk.Space()
	if err != nil {
		t.Fatal(err)
	}
	disk.SetSize(space.Total - space.Free + 1<<10)
	if got := r.do("POST", apiRoot+"/hubs", `{"name":"h"}`); got.status != 507 || got.code() != "disk_full" {
		t.Errorf("on a full disk: %d %s, want 507", got.status, got.body)
	}
	if logs, err := disk.List("hubs"); err != nil || len(logs) != 1 {
		t.Errorf("the logs are %v, %v, want that of the other hub", logs, err)
	}
	r.want(404, "GET", apiRoot+"/hubs/h", "")
	disk.SetSize(space.Total)
	r.want(201, "POST", apiRoot+"/hubs", `{"name":"h"}`)
}

// A queue whose target was replaced by a hub keeps what it cannot forward.
func TestForwardTargetThatBecomesAHub(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "target"})
	r.queue(entity.Queue{Name: "q", ForwardTo: "target"})
	r.want(204, "DELETE", apiRoot+"/queues/target", "")
	r.hub(entity.Hub{Name: "target", PartitionCount: 1})
	r.want(201, "POST", "/q/messages", "x")
	got := r.want(200, "DELETE", "/q/$Transfer/$DeadLetterQueue/messages/head?timeout=30", "")
	if got.body != "x" || !strings.Contains(fmt.Sprint(got.header["DeadLetterErrorDescription"]), "event hub") {
		t.Errorf("kept %q with %v", got.body, got.header)
	}
	var h HubEntity
	r.want(200, "GET", apiRoot+"/hubs/target", "").into(t, &h)
	if h.Runtime.Events != 0 {
		t.Errorf("the hub has %d events", h.Runtime.Events)
	}
}
