// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"slices"

	"github.com/triagemq/triagemq/internal/filter/value"
)

// kindError is an operand of a type that its operation can do nothing with.
type kindError struct {
	node  *node
	found string
	want  string
}

// checkCondition checks the types in n, and that n is true or false.
func checkCondition(n *node) *kindError {
	if bad := checkKinds(n); bad != nil {
		return bad
	}
	return wantKind(n, "a condition", value.Bool)
}

// checkKinds finds operands that could never work. What depends on the message
// passes: its type is known only at evaluation, where a mismatch is unknown.
// Comparing constants of unlike types passes too, because Service Bus takes it.
func checkKinds(n *node) *kindError {
	for _, kid := range n.kids {
		if bad := checkKinds(kid); bad != nil {
			return bad
		}
	}
	switch n.op {
	case opAnd, opOr, opNot:
		return wantKinds(n.kids, "a condition", value.Bool)
	case opAdd:
		return wantKinds(n.kids, "a number, a string, a dateTime or a duration", value.Int, value.Double, value.String, value.Time, value.Duration)
	case opSub:
		return wantKinds(n.kids, "a number, a dateTime or a duration", value.Int, value.Double, value.Time, value.Duration)
	case opMul, opDiv, opMod, opNegate, opPlus:
		return wantKinds(n.kids, "a number or a duration", value.Int, value.Double, value.Duration)
	case opNamed:
		return checkNamed(n)
	case opLike:
		return checkLike(n)
	default:
		return nil
	}
}

// checkNamed finds a constant that names a system property that does not exist.
func checkNamed(n *node) *kindError {
	if bad := wantKinds(n.kids, "a string", value.String); bad != nil {
		return bad
	}
	arg := n.kids[0]
	if arg.op != opConst && arg.op != opParam {
		return nil
	}
	if _, ok := scoped(arg.val.Str()); !ok {
		return &kindError{arg, arg.describe(), "a system property, such as 'sys.Label'"}
	}
	return nil
}

func checkLike(n *node) *kindError {
	if bad := wantKinds(n.kids, "a string", value.String); bad != nil {
		return bad
	}
	pat, esc := n.kids[1], (*node)(nil)
	if len(n.kids) > 2 {
		esc = n.kids[2]
		if esc.constant() && esc.val.Kind() == value.String && !oneRune(esc.val.Str()) {
			return &kindError{esc, esc.describe(), "a string of one character"}
		}
	}
	if pat.constant() && (esc == nil || esc.constant()) {
		if _, ok := compilePattern(pat.val.Str(), escapeOf(esc)); !ok {
			return &kindError{pat, pat.describe(), "a pattern that does not end in its escape character"}
		}
	}
	return nil
}

func escapeOf(n *node) string {
	if n == nil {
		return ""
	}
	return n.val.Str()
}

// constant reports whether n is written down, as opposed to computed.
func (n *node) constant() bool { return n.op == opConst || n.op == opParam }

func wantKinds(nodes []*node, want string, kinds ...value.Kind) *kindError {
	for _, n := range nodes {
		if bad := wantKind(n, want, kinds...); bad != nil {
			return bad
		}
	}
	return nil
}

func wantKind(n *node, want string, kinds ...value.Kind) *kindError {
	got := n.kind()
	if got <= value.Null { // open, or a NULL that makes the whole unknown
		return nil
	}
	if slices.Contains(kinds, got) {
		return nil
	}
	return &kindError{n, n.describe(), want}
}

// kind returns the type that n always has, or Unknown when that depends.
func (n *node) kind() value.Kind {
	switch n.op {
	case opConst, opParam:
		return n.val.Kind()
	case opNewID:
		return value.UUID
	case opProperty, opNamed, opNegate, opPlus, opAdd, opSub, opMul, opDiv, opMod:
		return value.Unknown
	default:
		return value.Bool
	}
}

// describe names n in an error message.
func (n *node) describe() string {
	if n.constant() && n.val.Known() {
		return n.val.Kind().String() + " " + shorten(n.String())
	}
	if n.kind() == value.Bool {
		return "condition " + shorten(n.String())
	}
	return shorten(n.String())
}
