// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strconv"
	"strings"
	"unsafe"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

const (
	defaultPage = 100
	// gatherers is how many requests gather a list at the same time. Only then is all of it in
	// memory; after that the page is.
	gatherers = 2
)

// list is a page of something.
type list[T any] struct {
	Items []T `json:"items"`
	Total int `json:"total"` // with the requested prefix
}

var (
	pageQuery = []parameter{
		{"skip", "integer", "Number of entries to skip."},
		{"top", "integer", "Maximum number of entries to return; default 100, at most 1000."},
	}
	listQuery = append([]parameter{{"prefix", "string", "Only names that begin with this, in any case."}}, pageQuery...)
)

// paging is the page that a query asks for.
type paging struct{ skip, top int }

func (c *call) paging() (p paging, err error) {
	if p.skip, err = c.number("skip", 0, 1<<30); err == nil {
		p.top, err = c.number("top", defaultPage, limits.Listed)
	}
	return p, err
}

// page answers with the part of a list of entities that the query selects. Only names are kept
// until an element is made, which is when it is written: so who reads slowly does not hold
// definitions that were changed or deleted meanwhile, and are charged to nobody any more. One
// that was deleted is left out.
func page[V any](c *call, gather func() (iter.Seq[string], error), view func(name string) (V, error)) (any, error) {
	return pageOf(c, gather, func(name string) string { return name }, nameSize, view)
}

// nameSize is what a name takes.
func nameSize(name string) int64 { return int64(unsafe.Sizeof(name)) + int64(len(name)) }

// names makes of a list what page gathers.
func names[D any](all iter.Seq[D], name func(D) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for d := range all {
			if !yield(name(d)) {
				return
			}
		}
	}
}

// pageOf is page for a list of anything that takes size bytes. gather returns all of the list: it
// is gathered by few requests at a time, and given up when the page was cut from it.
func pageOf[D, V any](c *call, gather func() (iter.Seq[D], error), name func(D) string, size func(D) int64, view func(D) (V, error)) (any, error) {
	p, err := c.paging()
	if err != nil {
		return nil, err
	}
	l := listing[D, V]{c: c, field: "items", size: size, view: view}
	prefix := entity.Key(c.URL.Query().Get("prefix"))
	err = c.gathering(func() error {
		all, err := gather()
		if err != nil {
			return err
		}
		for d := range all {
			if prefix != "" && !strings.HasPrefix(entity.Key(name(d)), prefix) {
				continue
			}
			if l.total++; l.total > p.skip && len(l.items) < p.top {
				l.items = append(l.items, d)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l.begin()
}

// gathering does work that has all of a list in memory, when few others do.
func (c *call) gathering(work func() error) error {
	leave, err := c.gatherers.Take(c.Context(), c.grant.Account())
	if err != nil {
		return err
	}
	defer leave()
	return work()
}

// gathered makes the value of an answer and its JSON, which is charged, when few others do: what
// there is to say of a hub of a thousand partitions is large before anybody knows how large.
func gathered[V any](c *call, value func() (V, error)) (b json.RawMessage, err error) {
	err = c.gathering(func() error {
		v, err := value()
		if err != nil {
			return err
		}
		b, err = c.encode(v)
		return err
	})
	return b, err
}

// listing is a page of a list as it is written: one element after the other is made, encoded,
// charged and written.
type listing[D, V any] struct {
	c     *call
	field string // that has the elements
	items []D
	total int
	size  func(D) int64 // of an element of items
	view  func(D) (V, error)
	first []byte // the first element, if there is one
}

// begin charges the page and makes its first element: an error until then sets the status.
func (l *listing[D, V]) begin() (any, error) {
	bytes := int64(0)
	for _, d := range l.items {
		bytes += l.size(d)
	}
	if err := l.c.charge(bytes); err != nil {
		return nil, err
	}
	var err error
	l.first, err = l.next()
	return l, err
}

// next returns the next element; nil is the end.
func (l *listing[D, V]) next() (b []byte, err error) {
	for len(l.items) > 0 && b == nil {
		var none D
		d := l.items[0]
		l.items[0], l.items = none, l.items[1:]
		v, err := l.view(d)
		if errors.Is(err, broker.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err == nil {
			l.c.inTurn(func() { b, err = json.Marshal(v) })
		}
		if err == nil {
			err = l.c.chargeLargest(valueCost * int64(len(b)))
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// stream implements streamed. After an error the answer is no JSON: its reader notices.
func (l *listing[D, V]) stream(w io.Writer) error {
	if _, err := io.WriteString(w, `{"`+l.field+`":[`); err != nil {
		return err
	}
	for b, between := l.first, ""; b != nil; between = "," {
		if _, err := io.WriteString(w, between); err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		l.first = nil
		if err := l.c.recheck(); err != nil {
			return err
		}
		var err error
		if b, err = l.next(); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, `],"total":`+strconv.Itoa(l.total)+"}\n")
	return err
}
