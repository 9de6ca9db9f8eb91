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

	"github.com/triagemq/triagemq/internal/admin/schema"
)

// checkAnswer compares an answer with what the document says about the
// operation.
func (r *rig) checkAnswer(req *http.Request, got answered) {
	r.t.Helper()
	_, pattern := r.api.mux.Handler(req)
	if pattern == "" || pattern == "GET "+apiRoot+"/openapi.json" {
		return
	}
	method, path, _ := strings.Cut(pattern, " ")
	op, ok := r.doc.Paths[strings.TrimPrefix(path, apiRoot)][strings.ToLower(method)]
	if !ok {
		r.t.Errorf("%s is served and not in the document", pattern)
		return
	}
	says, ok := op.Responses[fmt.Sprint(got.status)]
	if !ok {
		if got.status < 400 {
			r.t.Errorf("%s answered %d, which is not in the document", pattern, got.status)
		}
		says = op.Responses["default"]
	}
	if says.Content == nil {
		if got.body != "" {
			r.t.Errorf("%s answered %q, the document says nothing", pattern, got.body)
		}
		return
	}
	var value any
	if err := json.Unmarshal([]byte(got.body), &value); err != nil {
		r.t.Errorf("%s answered %d %q: %v", pattern, got.status, got.body, err)
		return
	}
	for _, fault := range check(r.doc.Components.Schemas, says.Content["application/json"].Schema, value, "body") {
		r.t.Errorf("%s: %s", pattern, fault)
	}
}

// check reports how a value differs from a schema.
func check(ss map[string]*schema.Schema, s *schema.Schema, value any, at string) []string {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		if ss[name] == nil {
			return []string{at + ": no schema " + name}
		}
		return check(ss, ss[name], value, at)
	}
	wrong := func() []string { return []string{fmt.Sprintf("%s is %v, not a %s", at, value, s.Type)} }
	var faults []string
	switch s.Type {
	case "object":
		m, ok := value.(map[string]any)
		if !ok {
			return wrong()
		}
		for _, name := range s.Required {
			if _, ok := m[name]; !ok {
				faults = append(faults, at+"."+name+" is missing")
			}
		}
		for name, v := range m {
			switch {
			case s.Properties[name] != nil:
				faults = append(faults, check(ss, s.Properties[name], v, at+"."+name)...)
			case s.Additional != nil:
				faults = append(faults, check(ss, s.Additional, v, at+"."+name)...)
			default:
				faults = append(faults, at+"."+name+" is not in the document")
			}
		}
	case "array":
		list, ok := value.([]any)
		if !ok {
			return wrong()
		}
		for i, v := range list {
			faults = append(faults, check(ss, s.Items, v, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case "string":
		text, ok := value.(string)
		if !ok || s.Enum != nil && !slices.Contains(s.Enum, text) {
			return wrong()
		}
	case "integer", "number":
		if n, ok := value.(float64); !ok || s.Minimum != nil && n < float64(*s.Minimum) {
			return wrong()
		}
	case "boolean":
		if _, ok := value.(bool); !ok {
			return wrong()
		}
	}
	return faults
}

// Every route of the document leads to a handler, and every handler is in it.
func TestDocumentAndHandlersAgree(t *testing.T) {
	r := start(t)
	documented := 0
	ids := map[string]bool{}
	for path, ops := range r.doc.Paths {
		for method, op := range ops {
			documented++
			if op.Summary == "" || ids[op.ID] {
				t.Errorf("%s %s: no summary, or the id %q is used twice", method, path, op.ID)
			}
			ids[op.ID] = true
			url := apiRoot + pathParameter.ReplaceAllString(path, "1")
			req, err := http.NewRequest(strings.ToUpper(method), url, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.ToUpper(method) + " " + apiRoot + path
			if _, pattern := r.api.mux.Handler(req); pattern != want {
				t.Errorf("%s leads to %q", want, pattern)
			}
		}
	}
	if documented != len(r.api.routes) {
		t.Errorf("%d operations in the document, %d routes", documented, len(r.api.routes))
	}
	if got := r.as("nobody", "GET", apiRoot+"/openapi.json", ""); got.status != http.StatusOK || !wellFormed(got.body) {
		t.Errorf("the document without a key: %d", got.status)
	}
}

func TestSchemaNoticesWhatDiffers(t *testing.T) {
	ss := newSchemas()
	ref := ss.Of(reflect.TypeFor[Sent]())
	for body, want := range map[string]int{`{"sent":1}`: 0, `{}`: 1, `{"sent":"1"}`: 1, `{"sent":1,"more":2}`: 1, `[]`: 1} {
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		if got := check(ss.ByName, ref, v, "body"); len(got) != want {
			t.Errorf("%s: faults %q, want %d", body, got, want)
		}
	}
}
