// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"slices"

	"github.com/triagemq/triagemq/internal/amqp/endpoint"
)

// replyLinks are the links of a connection on which the peer receives replies. There may
// be thousands, and each reply looks for its own.
type replyLinks map[replyKey][]*replies

// replyKey is what a link is found by.
type replyKey struct {
	node    string
	session *endpoint.Session // that the link is in; nil for any
	by      foundBy
	text    string // empty for anyLink
}

type foundBy uint8

const (
	anyLink foundBy = iota
	byTarget
	byName
)

// keys returns all that a link is found by.
func (to *replies) keys() (keys [6]replyKey) {
	for i, s := range []*endpoint.Session{to.link.Session(), nil} {
		keys[3*i] = replyKey{to.node, s, anyLink, ""}
		keys[3*i+1] = replyKey{to.node, s, byTarget, to.target()}
		keys[3*i+2] = replyKey{to.node, s, byName, to.link.Name()}
	}
	return keys
}

func (ls replyLinks) add(to *replies) {
	for _, k := range to.keys() {
		ls[k] = append(ls[k], to)
	}
}

func (ls replyLinks) remove(to *replies) {
	for _, k := range to.keys() {
		all := ls[k]
		i := slices.Index(all, to)
		if i < 0 {
			continue
		}
		all[i] = all[len(all)-1]
		all[len(all)-1] = nil
		if ls[k] = all[:len(all)-1]; len(all) == 1 {
			delete(ls, k)
		}
	}
}

// find finds the link that the reply-to of a request means. SDKs name the target address
// of their receiver, or its link name; what they write need not be an address at all.
// Failing that, the only receiver on the node will be it. Those in the session of the
// request come first.
func (ls replyLinks) find(node string, session *endpoint.Session, replyTo string) *replies {
	for _, s := range []*endpoint.Session{session, nil} {
		for _, by := range []foundBy{byTarget, byName} {
			if found := ls[replyKey{node, s, by, replyTo}]; len(found) > 0 {
				return found[0]
			}
		}
		if all := ls[replyKey{node, s, anyLink, ""}]; len(all) == 1 {
			return all[0]
		}
	}
	return nil
}
