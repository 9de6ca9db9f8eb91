// SPDX-License-Identifier: Apache-2.0

package atom

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

// The namespaces. They are on the wire and never change.
const (
	nsAtom     = "http://www.w3.org/2005/Atom"
	nsBus      = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
	nsCounts   = "http://schemas.microsoft.com/netservices/2011/06/servicebus"
	nsInstance = "http://www.w3.org/2001/XMLSchema-instance"
	nsSchema   = "http://www.w3.org/2001/XMLSchema"
)

// element is an XML element. Names of elements are compared without their
// namespace: clients differ in which one they put the same thing.
type element struct {
	name     string
	kind     string // the local part of its i:type, with any prefix
	null     bool   // i:nil
	chars    []byte
	children []*element
}

// parse reads one document, whose elements and attributes were counted.
func parse(body []byte) (*element, error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	var open []*element
	var root *element
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && root != nil && len(open) == 0 {
			return root, nil
		}
		if err != nil {
			return nil, problem.Bad("The request is not well-formed XML: %v.", err)
		}
		switch t := token.(type) {
		case xml.Directive:
			return nil, problem.Bad("The request has a document type declaration, which is not accepted.")
		case xml.StartElement:
			if len(open) >= limits.XMLDepth {
				return nil, problem.Bad("The elements of the request are nested deeper than %d.", limits.XMLDepth)
			}
			e := newElement(t)
			switch {
			case len(open) > 0:
				parent := open[len(open)-1]
				parent.children = append(parent.children, e)
			case root != nil:
				return nil, problem.Bad("The request has more than one root element.")
			default:
				root = e
			}
			open = append(open, e)
		case xml.CharData:
			if len(open) > 0 {
				e := open[len(open)-1]
				e.chars = append(e.chars, t...)
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
}

func newElement(t xml.StartElement) *element {
	e := &element{name: t.Name.Local}
	for _, a := range t.Attr {
		if a.Name.Space != nsInstance {
			continue
		}
		switch a.Name.Local {
		case "type":
			e.kind = a.Value[strings.LastIndexByte(a.Value, ':')+1:]
		case "nil":
			e.null = a.Value == "true"
		}
	}
	return e
}

func (e *element) text() string { return string(e.chars) }

// child returns the first child of that name, nil if there is none.
func (e *element) child(name string) *element {
	if e == nil {
		return nil
	}
	for _, c := range e.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// has reports whether a property is present.
func (e *element) has(name string) bool {
	c := e.child(name)
	return c != nil && !c.null && strings.TrimSpace(c.text()) != ""
}

// all returns the children of that name.
func (e *element) all(name string) []*element {
	var found []*element
	if e != nil {
		for _, c := range e.children {
			if c.name == name {
				found = append(found, c)
			}
		}
	}
	return found
}

// description returns the entity in an entry, and what it is.
func description(root *element) (*element, error) {
	if root.name != "entry" {
		return nil, problem.Bad("The request is a <%s>, not an ATOM <entry>.", root.name)
	}
	content := root.child("content")
	if content == nil || len(content.children) != 1 {
		return nil, problem.Bad("The entry has no <content> with one description.")
	}
	return content.children[0], nil
}

// reader reads properties of a description. It collects all faults, so that a
// client gets all of them at once. A property that is absent or empty leaves
// its target as it is.
type reader struct {
	*element
	faults entity.Faults
}

func (r *reader) value(name string, parse func(string) error) {
	if !r.has(name) {
		return
	}
	if err := parse(strings.TrimSpace(r.child(name).text())); err != nil {
		r.faults = append(r.faults, entity.Fault{Field: name, Problem: err.Error()})
	}
}

func (r *reader) str(name string, to *string) {
	if r.has(name) {
		*to = r.child(name).text()
	}
}

func (r *reader) duration(name string, to *entity.Duration) {
	r.value(name, func(s string) error { return to.UnmarshalText([]byte(s)) })
}

func (r *reader) boolean(name string, to *bool) {
	r.value(name, func(s string) (err error) {
		*to, err = strconv.ParseBool(strings.ToLower(s))
		return err
	})
}

// optional is boolean for properties that default to true.
func (r *reader) optional(name string, to **bool) {
	if r.has(name) {
		*to = new(bool)
		r.boolean(name, *to)
	}
}

func (r *reader) integer(name string, to *int64) {
	r.value(name, func(s string) (err error) {
		*to, err = strconv.ParseInt(s, 10, 64)
		return err
	})
}

func (r *reader) deliveries(to *entity.Deliveries) {
	r.value("MaxDeliveryCount", func(s string) error {
		n, err := strconv.ParseInt(s, 10, 32)
		if err == nil && n == 0 {
			return entity.ErrNoDeliveries
		}
		*to = entity.Deliveries(n)
		return err
	})
}

func (r *reader) status(to *entity.Status) {
	r.value("Status", func(s string) error { return to.UnmarshalText([]byte(s)) })
}

// err is what was wrong.
func (r *reader) err() error {
	if len(r.faults) == 0 {
		return nil
	}
	return &problem.Problem{Status: http.StatusBadRequest, Code: "invalid", Message: r.faults.Error()}
}
