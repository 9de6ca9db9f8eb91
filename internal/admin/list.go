// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/json"
	"errors"
	"io"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

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

// page answers with the part of a list that the query selects. gather returns all of the list:
// it is gathered by few requests at a time, and given up when the page was cut from it. An
// element is made when it is written. One that was deleted meanwhile is left out.
func page[D, V any](c *call, gather func() (iter.Seq[D], error), name func(D) string, view func(D) (V, error)) (any, error) {
	p, err := c.paging()
	if err != nil {
		return nil, err
	}
	l := listing[D, V]{c: c, field: "items", view: view}
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

// listed makes of a list what page gathers.
func listed[D any](all []D, err error) (iter.Seq[D], error) { return slices.Values(all), err }

// gathering does work that has all of a list in memory, when few others do.
func (c *call) gathering(work func() error) error {
	select {
	case c.gatherers <- struct{}{}:
	case <-c.Context().Done():
		return c.Context().Err()
	}
	defer func() { <-c.gatherers }()
	return work()
}

// listing is a page of a list as it is written: one element after the other is made, encoded,
// charged and written.
type listing[D, V any] struct {
	c     *call
	field string // that has the elements
	items []D
	total int
	view  func(D) (V, error)
	first []byte // the first element, if there is one
}

// begin charges the page and makes its first element: an error until then sets the status.
func (l *listing[D, V]) begin() (any, error) {
	if err := l.c.charge(int64(len(l.items)) * int64(reflect.TypeFor[D]().Size())); err != nil {
		return nil, err
	}
	var err error
	l.first, err = l.next()
	return l, err
}

// next returns the next element; nil is the end.
func (l *listing[D, V]) next() (b []byte, err error) {
	for len(l.items) > 0 && b == nil {
		d := l.items[0]
		l.items = l.items[1:]
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
