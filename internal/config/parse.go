// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// parse reads the text of a file and checks it.
func parse(file string, text []byte) (Config, error) {
	d := &decoder{
		source:  source{file: file, at: map[string]position{}},
		anchors: map[string]ast.Node{},
		budget:  maxValues,
	}
	body, err := d.document(text)
	if err != nil {
		return Config{source: d.source}, err
	}
	var c Config
	if body != nil {
		d.config(d.root(body), &c)
	}
	c.source = d.source
	faults := d.faults
	for _, f := range append(c.settingFaults(), c.entityFaults()...) {
		if !d.unread(f.Path) {
			faults = append(faults, f)
		}
	}
	return c, faults.err()
}

// unread reports whether the value at path, or something in it or around it,
// could not be read. That has been reported; checking the zero value instead
// would report it again.
func (d *decoder) unread(path string) bool {
	return slices.ContainsFunc(d.faults, func(f Fault) bool { return within(f.Path, path) || within(path, f.Path) })
}

// within reports whether a value is another, or part of it.
func within(path, whole string) bool {
	rest, ok := strings.CutPrefix(path, whole)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// document returns the only document of a file; nil if it is empty.
func (d *decoder) document(text []byte) (ast.Node, error) {
	parsed, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, d.syntaxFault(err)
	}
	var body ast.Node
	for _, doc := range parsed.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			d.note("", doc.Body)
			return nil, Faults{d.source.fault("", "a second document; a file has one")}
		}
		body = doc.Body
	}
	if body != nil {
		ast.Walk(anchorFinder(d.anchors), body)
	}
	return body, nil
}

// syntaxFault extracts the message of the library's error, which otherwise
// contains a drawing of the source.
func (d *decoder) syntaxFault(err error) error {
	f := Fault{File: d.source.file, Problem: err.Error()}
	if located, ok := errors.AsType[yaml.Error](err); ok {
		f.Problem = located.GetMessage()
		if token := located.GetToken(); token != nil && token.Position != nil {
			f.Line, f.Column = token.Position.Line, token.Position.Column
		}
	}
	f.Problem = "not YAML: " + strings.TrimSpace(f.Problem)
	return Faults{f}
}

// anchorFinder collects the values of anchors, by name.
type anchorFinder map[string]ast.Node

func (a anchorFinder) Visit(n ast.Node) ast.Visitor {
	if anchor, ok := n.(*ast.AnchorNode); ok {
		a[anchor.Name.GetToken().Value] = anchor.Value
	}
	return a
}
