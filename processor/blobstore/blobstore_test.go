// SPDX-License-Identifier: Apache-2.0

package blobstore_test

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/triagemq/triagemq/processor"
	"github.com/triagemq/triagemq/processor/blobstore"
)

// service is as much of the blob service as the store uses. It records what comes.
type service struct {
	*httptest.Server
	mu       sync.Mutex
	writes   int
	blobs    map[string]*blobRecord
	requests []string // METHOD path?query, with the headers that matter; guarded by mu
	versions []string // guarded by mu
}

type blobRecord struct {
	etag     string
	modified time.Time
	metadata map[string]string
}

// clock is that of the service, minutes away from ours.
var clock = time.Now().Add(-7 * time.Minute).Truncate(time.Second)

func startService(t *testing.T) *service {
	s := &service{blobs: map[string]*blobRecord{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := r.Method + " " + r.URL.Path
	if comp := r.URL.Query().Get("comp"); comp != "" {
		line += " " + comp
	}
	for _, h := range []string{"If-Match", "If-None-Match"} {
		if v := r.Header.Get(h); v != "" {
			line += " " + h + ":" + v
		}
	}
	s.requests = append(s.requests, line)
	s.versions = append(s.versions, strings.Join(r.Header["X-Ms-Version"], ","))
	w.Header().Set("Date", clock.UTC().Format(http.TimeFormat))
	if r.Method == http.MethodGet {
		s.list(w, r.URL.Query().Get("prefix"))
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/container/")
	b := s.blobs[name]
	match, noneMatch := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	switch {
	case b == nil && r.URL.Query().Get("comp") == "metadata":
		refuse(w, http.StatusNotFound, "BlobNotFound")
		return
	case b != nil && noneMatch == "*":
		refuse(w, http.StatusConflict, "BlobAlreadyExists")
		return
	case match != "" && strings.Trim(match, `"`) != b.etag:
		refuse(w, http.StatusPreconditionFailed, "ConditionNotMet")
		return
	}
	s.writes++
	b = &blobRecord{etag: fmt.Sprintf("0x%d", s.writes), modified: clock, metadata: map[string]string{}}
	for k, v := range r.Header {
		if name, ok := strings.CutPrefix(strings.ToLower(k), "x-ms-meta-"); ok {
			b.metadata[name] = v[0]
		}
	}
	s.blobs[name] = b
	w.Header().Set("ETag", `"`+b.etag+`"`)
	w.Header().Set("Last-Modified", b.modified.UTC().Format(http.TimeFormat))
	if r.URL.Query().Get("comp") == "" {
		w.WriteHeader(http.StatusCreated)
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("x-ms-error-code", code)
	w.WriteHeader(status)
}

type listedBlob struct {
	Name       string
	Properties struct {
		LastModified string `xml:"Last-Modified"`
		Etag         string
	}
	Metadata metadataXML
}

type metadataXML map[string]string

func (m metadataXML) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	if err := e.EncodeToken(start); err != nil {
		return err
	}
	for k, v := range m {
		if err := e.EncodeElement(v, xml.StartElement{Name: xml.Name{Local: k}}); err != nil {
			return err
		}
	}
	return e.EncodeToken(start.End())
}

func (s *service) list(w http.ResponseWriter, prefix string) {
	var out struct {
		XMLName xml.Name     `xml:"EnumerationResults"`
		Blobs   []listedBlob `xml:"Blobs>Blob"`
	}
	for name, b := range s.blobs {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		l := listedBlob{Name: name, Metadata: b.metadata}
		l.Properties.LastModified, l.Properties.Etag = b.modified.UTC().Format(http.TimeFormat), b.etag
		out.Blobs = append(out.Blobs, l)
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(out)
}

// open makes a client that signs its requests, as with an account key.
func (s *service) open(t *testing.T, policies ...policy.Policy) *container.Client {
	t.Helper()
	credential, err := container.NewSharedKeyCredential("account", "a2V5")
	if err != nil {
		t.Fatal(err)
	}
	c, err := container.NewClientWithSharedKeyCredential(s.URL+"/container", credential, &container.ClientOptions{
		ClientOptions: azcore.ClientOptions{PerCallPolicies: policies},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var scope = processor.Scope{Namespace: "Broker.Example:5671", Hub: "Readings", Group: "$Default"}

func TestLayoutAndConditions(t *testing.T) {
	for _, c := range []struct {
		goNames bool
		dir     string
	}{
		{false, "broker.example/readings/$default"},
		{true, "Broker.Example:5671/Readings/$Default"},
	} {
		s := startService(t)
		store := blobstore.New(s.open(t), &blobstore.Options{GoNames: c.goNames})
		first := claim(t, store, processor.Ownership{Scope: scope, Partition: "3", Owner: "one"})
		if len(first) != 1 || first[0].ETag == "" || !first[0].Modified.Equal(clock) {
			t.Fatalf("first claim: %+v", first)
		}
		if again := claim(t, store, processor.Ownership{Scope: scope, Partition: "3", Owner: "two"}); len(again) != 0 {
			t.Errorf("a claim without an ETag of a record that is there: %+v", again)
		}
		taken := first[0]
		taken.Owner = "two"
		second := claim(t, store, taken)
		if len(second) != 1 || second[0].ETag == first[0].ETag {
			t.Fatalf("claim with the ETag: %+v", second)
		}
		if late := claim(t, store, first[0]); len(late) != 0 {
			t.Errorf("claim with an old ETag: %+v", late)
		}
		list, now, err := store.ListOwnership(t.Context(), scope)
		if err != nil || len(list) != 1 || list[0].Owner != "two" || list[0].Partition != "3" || !now.Equal(clock) {
			t.Errorf("ownership: %+v at %v, %v", list, now, err)
		}
		for range 2 {
			if err := store.SetCheckpoint(t.Context(), processor.Checkpoint{Scope: scope, Partition: "3", SeqNo: 41, Offset: "4711"}); err != nil {
				t.Fatal(err)
			}
		}
		marks, err := store.ListCheckpoints(t.Context(), scope)
		if err != nil || len(marks) != 1 || marks[0] != (processor.Checkpoint{Scope: scope, Partition: "3", SeqNo: 41, Offset: "4711"}) {
			t.Errorf("checkpoints: %+v, %v", marks, err)
		}
		owner, mark := "/container/"+c.dir+"/ownership/3", "/container/"+c.dir+"/checkpoint/3"
		want := []string{
			"PUT " + owner + " If-None-Match:*",
			"PUT " + owner + " If-None-Match:*",
			"PUT " + owner + ` metadata If-Match:"0x1"`,
			"PUT " + owner + ` metadata If-Match:"0x1"`,
			"GET /container list",
			"PUT " + mark + " metadata", // not there yet
			"PUT " + mark,
			"PUT " + mark + " metadata",
			"GET /container list",
		}
		if !slices.Equal(s.requests, want) {
			t.Errorf("requests:\n%s\nwant:\n%s", strings.Join(s.requests, "\n"), strings.Join(want, "\n"))
		}
		if got := s.blobs[c.dir+"/checkpoint/3"].metadata; got["sequencenumber"] != "41" || got["offset"] != "4711" {
			t.Errorf("metadata of the checkpoint: %v", got)
		}
		if got := s.blobs[c.dir+"/ownership/3"].metadata; got["ownerid"] != "two" {
			t.Errorf("metadata of the ownership: %v", got)
		}
	}
}

func claim(t *testing.T, s processor.CheckpointStore, claims ...processor.Ownership) []processor.Ownership {
	t.Helper()
	won, err := s.ClaimOwnership(t.Context(), claims)
	if err != nil {
		t.Fatal(err)
	}
	return won
}

func TestGivenUpRecordsHaveNoOwner(t *testing.T) {
	s := startService(t)
	store := blobstore.New(s.open(t), nil)
	got := claim(t, store, processor.Ownership{Scope: scope, Partition: "0", Owner: ""})
	s.blobs["broker.example/readings/$default/ownership/1"] = &blobRecord{etag: "0xff", modified: clock} // no metadata
	list, _, err := store.ListOwnership(t.Context(), scope)
	if err != nil || len(got) != 1 || len(list) != 2 || list[0].Owner != "" || list[1].Owner != "" {
		t.Errorf("claimed %+v, ownership %+v, %v", got, list, err)
	}
}

func TestACheckpointWithoutASequenceNumber(t *testing.T) {
	s := startService(t)
	store := blobstore.New(s.open(t), nil)
	name := "broker.example/readings/$default/checkpoint/0"
	s.blobs[name] = &blobRecord{etag: "0x1", modified: clock, metadata: map[string]string{"Offset": "12"}}
	list, err := store.ListCheckpoints(t.Context(), scope)
	if err != nil || len(list) != 1 || list[0].SeqNo != 12 {
		t.Errorf("checkpoints: %+v, %v", list, err)
	}
	s.blobs[name].metadata["Offset"] = "1:2:3"
	if list, err := store.ListCheckpoints(t.Context(), scope); err == nil {
		t.Errorf("checkpoints: %+v, want an error", list)
	}
}

func TestTheVersionOfTheServiceIsSettable(t *testing.T) {
	for _, version := range []string{"2017-11-09", "2019-02-02", "2021-12-02"} {
		s := startService(t)
		store := blobstore.New(s.open(t, blobstore.Version(version)), nil)
		got := claim(t, store, processor.Ownership{Scope: scope, Partition: "0", Owner: "one"})
		claim(t, store, got...)
		if err := store.SetCheckpoint(t.Context(), processor.Checkpoint{Scope: scope, Partition: "0", SeqNo: 1, Offset: "1"}); err != nil {
			t.Fatal(err)
		}
		if _, err := store.ListCheckpoints(t.Context(), scope); err != nil {
			t.Fatal(err)
		}
		if len(s.versions) != 5 {
			t.Fatalf("%d requests, want 5", len(s.versions))
		}
		for i, v := range s.versions {
			if v != version {
				t.Errorf("%s: version %q, want %q", s.requests[i], v, version)
			}
		}
	}
}

// A checkpoint that cannot be read does not hide the others.
func TestABadCheckpointHidesNoOthers(t *testing.T) {
	s := startService(t)
	store := blobstore.New(s.open(t), nil)
	for partition, n := range map[string]string{"0": "odd", "1": "7", "2": ""} {
		s.blobs["broker.example/readings/$default/checkpoint/"+partition] = &blobRecord{
			etag: "0x1", modified: clock, metadata: map[string]string{"sequencenumber": n},
		}
	}
	list, err := store.ListCheckpoints(t.Context(), scope)
	if err == nil || len(list) != 1 || list[0].Partition != "1" || list[0].SeqNo != 7 {
		t.Errorf("checkpoints: %+v, %v; want that of partition 1 and an error", list, err)
	}
}

// An answer that lists nothing, not even that there is nothing, is no empty list: partitions
// would begin anew.
func TestAnAnswerWithoutAListIsAnError(t *testing.T) {
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		_, _ = w.Write([]byte("<EnumerationResults></EnumerationResults>"))
	}))
	defer odd.Close()
	store := blobstore.New((&service{Server: odd}).open(t), nil)
	if list, err := store.ListCheckpoints(t.Context(), scope); err == nil {
		t.Errorf("checkpoints: %+v, want an error", list)
	}
}
