// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/triagemq/triagemq/internal/admin/schema"
)

// The parts of an OpenAPI document that we use.
type (
	document struct {
		OpenAPI    string                          `json:"openapi"`
		Info       info                            `json:"info"`
		Servers    []server                        `json:"servers"`
		Security   []map[string][]string           `json:"security"`
		Paths      map[string]map[string]operation `json:"paths"`
		Components components                      `json:"components"`
	}
	info struct {
		Title       string `json:"title"`
		Version     string `json:"version"`
		Description string `json:"description"`
	}
	server struct {
		URL string `json:"url"`
	}
	operation struct {
		ID         string                 `json:"operationId"`
		Summary    string                 `json:"summary"`
		Tags       []string               `json:"tags"`
		Parameters []openParameter        `json:"parameters,omitempty"`
		Body       *content               `json:"requestBody,omitempty"`
		Responses  map[string]response    `json:"responses"`
		Security   *[]map[string][]string `json:"security,omitempty"`
		Right      string                 `json:"x-right,omitzero"` // that the caller needs
	}
	openParameter struct {
		Name        string         `json:"name"`
		In          string         `json:"in"`
		Required    bool           `json:"required,omitzero"`
		Description string         `json:"description,omitzero"`
		Schema      *schema.Schema `json:"schema"`
	}
	content struct {
		Content map[string]media `json:"content"`
	}
	media struct {
		Schema *schema.Schema `json:"schema"`
	}
	response struct {
		Description string           `json:"description"`
		Content     map[string]media `json:"content,omitempty"`
	}
	components struct {
		Schemas  map[string]*schema.Schema `json:"schemas"`
		Security map[string]securityScheme `json:"securitySchemes"`
	}
	securityScheme struct {
		Type        string `json:"type"`
		Scheme      string `json:"scheme,omitzero"`
		In          string `json:"in,omitzero"`
		Name        string `json:"name,omitzero"`
		Description string `json:"description"`
	}
)

// describe makes the document from the table of routes.
func (a *api) describe() []byte {
	ss := newSchemas()
	d := document{
		OpenAPI: "3.1.0",
		Info: info{Title: "TriageMQ", Version: "1", Description: "Administration of a broker and its messages. " +
			"Names with a slash are percent-encoded in paths: orders%2Feu."},
		Servers:  []server{{apiRoot}},
		Security: []map[string][]string{{"sas": {}}, {"basic": {}}},
		Paths:    map[string]map[string]operation{},
		Components: components{Schemas: ss.ByName, Security: map[string]securityScheme{
			"sas": {Type: "apiKey", In: "header", Name: "Authorization",
				Description: "A shared access signature: SharedAccessSignature sr=…&sig=…&se=…&skn=…"},
			"basic": {Type: "http", Scheme: "basic", Description: "The name of a rule as user and one of its keys as password."},
		}},
	}
	for i := range a.routes {
		rt := &a.routes[i]
		if d.Paths[rt.path] == nil {
			d.Paths[rt.path] = map[string]operation{}
		}
		d.Paths[rt.path][strings.ToLower(rt.method)] = rt.operation(ss)
	}
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		panic("admin: the OpenAPI document: " + err.Error()) // made of plain values
	}
	return b
}

var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

func (rt *route) operation(ss *schema.Set) operation {
	op := operation{ID: rt.id, Summary: rt.summary, Tags: []string{strings.Split(rt.path, "/")[1]}, Responses: map[string]response{}}
	for _, m := range pathParameter.FindAllStringSubmatch(rt.path, -1) {
		s := &schema.Schema{Type: "string"}
		if m[1] == "seq" {
			s = &schema.Schema{Type: "integer", Minimum: new(int)}
		}
		op.Parameters = append(op.Parameters, openParameter{Name: m[1], In: "path", Required: true, Schema: s})
	}
	for _, p := range rt.query {
		op.Parameters = append(op.Parameters, openParameter{Name: p.name, In: "query", Description: p.about, Schema: &schema.Schema{Type: p.kind}})
	}
	if rt.body != nil {
		op.Body = &content{inJSON(ss.Of(reflect.TypeOf(rt.body)))}
	}
	success := response{Description: "Success."}
	if rt.result != nil {
		success.Content = inJSON(ss.Of(reflect.TypeOf(rt.result)))
	}
	op.Responses[strconv.Itoa(max(rt.status, http.StatusOK))] = success
	if rt.method == http.MethodPut && strings.HasPrefix(rt.id, "put") {
		op.Responses[strconv.Itoa(http.StatusCreated)] = success
	}
	op.Responses["default"] = response{Description: "An error.", Content: inJSON(ss.Of(reflect.TypeFor[failure]()))}
	if rt.right == 0 {
		op.Security = &[]map[string][]string{}
	} else {
		op.Right = rt.right.String()
	}
	return op
}

func inJSON(s *schema.Schema) map[string]media { return map[string]media{"application/json": {s}} }
