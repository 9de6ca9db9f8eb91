// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
)

// paged are the lists of the API that are cut into pages by skip and top. They are written
// element by element: see listing.
var paged = []string{
	"listConnections", "listGroups", "listHubs", "listObjectives", "listPools", "listQueues", "listRules", "listSubscriptions", "listTopics",
}

// bounded says of the other answers that have a list somewhere what bounds it.
var bounded = map[reflect.Type]string{
	reflect.TypeFor[Entity[entity.Queue]]():        "a definition, of 1 MiB, and levels, of which there are 10",
	reflect.TypeFor[Entity[entity.Topic]]():        "a definition, of 1 MiB, and levels",
	reflect.TypeFor[Entity[entity.Subscription]](): "a definition with its rules, of 1 MiB, and levels",
	reflect.TypeFor[entity.Rule]():                 "64 properties or parameters of 1,024 characters",
	reflect.TypeFor[HubEntity]():                   "1,024 partitions, 1,000 groups, and readers, which are links; charged",
	reflect.TypeFor[GroupEntity]():                 "1,024 partitions, 1,024 members, and the last changes; charged",
	reflect.TypeFor[broker.PartitionRuntime]():     "readers, which are links; charged",
	reflect.TypeFor[Messages]():                    "1,000 messages, 16 MiB of JSON; message by message",
	reflect.TypeFor[Message]():                     "1 MiB of JSON besides its body, which is charged",
	reflect.TypeFor[broker.PolicyState]():          "a policy of 256 KiB",
	reflect.TypeFor[broker.DryRun]():               "the classes of two policies, of which there are 255",
	reflect.TypeFor[broker.Objectives]():           "255 classes",
	reflect.TypeFor[Explained]():                   "levels, and 255 classes",
	reflect.TypeFor[list[broker.Pool]]():           "the pools of one name: 10,000 processes in all; pool by pool",
	reflect.TypeFor[Trials]():                      "rules of the topic; rule by rule",
	reflect.TypeFor[Namespace]():                   "100 warnings",
}

// Every answer with a list in it is paged, or is in the table with what bounds it.
func TestEveryListIsBounded(t *testing.T) {
	r := start(t)
	known, said := map[string]bool{}, map[reflect.Type]bool{}
	for _, rt := range r.api.routes {
		if rt.result == nil || !hasList(reflect.TypeOf(rt.result), map[reflect.Type]bool{}) {
			continue
		}
		known[rt.id] = true
		inPages := slices.Contains(paged, rt.id)
		if inPages != slices.ContainsFunc(rt.query, func(p parameter) bool { return p.name == "top" }) {
			t.Errorf("%s: the parameter top and the table paged do not agree", rt.id)
		}
		said[reflect.TypeOf(rt.result)] = true
		if !inPages && bounded[reflect.TypeOf(rt.result)] == "" {
			t.Errorf("%s %s answers with a list (%s): cut it into pages, or say what bounds it in the table", rt.method, rt.path, rt.id)
		}
	}
	for _, id := range paged {
		if !known[id] {
			t.Errorf("%s is no list", id)
		}
	}
	for typ := range bounded {
		if !said[typ] {
			t.Errorf("no route answers with a list in %v", typ)
		}
	}
}

// hasList reports whether a value of a type may contain any number of others.
func hasList(typ reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[typ] || typ == reflect.TypeFor[json.RawMessage]() {
		return false
	}
	seen[typ] = true
	switch typ.Kind() {
	case reflect.Map:
		return true
	case reflect.Slice:
		return typ.Elem().Kind() != reflect.Uint8
	case reflect.Pointer, reflect.Array:
		return hasList(typ.Elem(), seen)
	case reflect.Struct:
		for i := range typ.NumField() {
			if f := typ.Field(i); f.IsExported() && hasList(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

// A page has a size, and no client gets a larger one.
func TestPagesAreBounded(t *testing.T) {
	r := start(t)
	r.topic("t", entity.Subscription{Name: "s"})
	if _, err := r.b.CreateHub(t.Context(), entity.Hub{Name: "h", PartitionCount: 1}); err != nil {
		t.Fatal(err)
	}
	path := strings.NewReplacer("{topic}", "t", "{subscription}", "s", "{hub}", "h")
	for _, rt := range r.api.routes {
		if !slices.Contains(paged, rt.id) {
			continue
		}
		at := apiRoot + path.Replace(rt.path)
		r.want(http.StatusOK, rt.method, at+"?top=1000", "")
		if got := r.want(http.StatusBadRequest, rt.method, at+"?top=1001", ""); got.code() != "bad_request" {
			t.Errorf("%s: %s", at, got.body)
		}
	}
}

// All of a list is what its pages have together; what a page has is charged.
func TestPagesHaveAllOfAList(t *testing.T) {
	r := start(t)
	const n = 250
	for i := range n {
		r.queue(entity.Queue{Name: fmt.Sprintf("q%03d", i)})
	}
	var names []string
	for len(names) < n {
		var l list[Entity[entity.Queue]]
		r.want(http.StatusOK, http.MethodGet, fmt.Sprintf("%s/queues?skip=%d", apiRoot, len(names)), "").into(t, &l)
		if l.Total != n || len(l.Items) == 0 || len(l.Items) > defaultPage {
			t.Fatalf("a page of %d of %d", len(l.Items), l.Total)
		}
		for _, q := range l.Items {
			names = append(names, q.Definition.Name)
		}
	}
	if !slices.IsSorted(names) || len(slices.Compact(names)) != n {
		t.Errorf("the pages have %d queues: %v", len(names), names)
	}
}
