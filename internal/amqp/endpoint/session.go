// SPDX-License-Identifier: Apache-2.0

package endpoint

import "iter"

// Session is one session of a peer: links in one session share an order.
type Session struct {
	// Value is the App's own; the endpoint never looks at it.
	Value any
}

// Links yields the attached links in the order of their handles.
func (s *Session) Links() iter.Seq[*Link] { return func(func(*Link) bool) {} }
