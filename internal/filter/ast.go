// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strings"

	"github.com/triagemq/triagemq/internal/filter/value"
)

type op uint8

const (
	opConst op = iota
	opParam
	opProperty
	opNamed // property(e)
	opNewID
	opNegate
	opPlus
	opAdd
	opSub
	opMul
	opDiv
	opMod
	opEqual
	opNotEqual
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opIsNull
	opIn
	opLike
	opExists
	opNot
	opAnd
	opOr
)

// Precedences, weakest first. Comparison does not associate.
const (
	precNone = iota
	precOr
	precAnd
	precNot
	precCompare
	precSum
	precProduct
	precUnary
	precAtom
)

// infix is the spelling and precedence of the operators between two operands.
var infix = map[op]struct {
	text string
	prec int
}{
	opAdd: {"+", precSum}, opSub: {"-", precSum},
	opMul: {"*", precProduct}, opDiv: {"/", precProduct}, opMod: {"%", precProduct},
	opEqual: {"=", precCompare}, opNotEqual: {"<>", precCompare},
	opLess: {"<", precCompare}, opLessEqual: {"<=", precCompare},
	opGreater: {">", precCompare}, opGreaterEqual: {">=", precCompare},
	opAnd: {"AND", precAnd}, opOr: {"OR", precOr},
}

// node is one operation. AND and OR take any number of kids, so that a long list
// of alternatives is not a deep tree. A parsed node never changes.
type node struct {
	// Fields that evaluation reads are first, to share a cache line.
	op      op
	negated bool // IS NOT NULL, NOT IN, NOT LIKE
	fixed   bool // val is the result for every message
	slot    int  // opProperty: index into Expr.names
	kids    []*node
	held    *value.Value             // &val of constants, once the expression is compiled
	name    Name                     // opProperty
	like    *pattern                 // opLike whose pattern is fixed
	set     map[value.Value]struct{} // opIn over many constants, by index key
	val     value.Value              // opConst, opParam, or fixed
	param   string                   // opParam
	depth   int                      // of the tree below, this node included
	pos     int                      // where the operation begins in the text
}

// comparison reports whether n compares two values that are not both fixed.
func (n *node) comparison() bool {
	return n.op >= opEqual && n.op <= opGreaterEqual && !n.fixed
}

// prec returns how tightly the outermost operation of n binds.
func (n *node) prec() int {
	if in, ok := infix[n.op]; ok {
		return in.prec
	}
	switch n.op {
	case opNot:
		return precNot
	case opIsNull, opIn, opLike:
		return precCompare
	case opNegate, opPlus:
		return precUnary
	default:
		return precAtom
	}
}

// String returns the canonical form.
func (n *node) String() string {
	var b strings.Builder
	n.write(&b)
	return b.String()
}

func (n *node) write(b *strings.Builder) {
	switch n.op {
	case opConst:
		b.WriteString(n.val.String())
	case opParam:
		b.WriteString("@" + n.param)
	case opProperty:
		b.WriteString(n.name.String())
	case opNewID:
		b.WriteString("newid()")
	case opNamed:
		n.writeCall(b, "property(", n.kids)
	case opExists:
		n.writeCall(b, "EXISTS(", n.kids)
	case opNegate:
		b.WriteByte('-')
		n.kids[0].writeIn(b, precUnary)
	case opPlus:
		b.WriteByte('+')
		n.kids[0].writeIn(b, precUnary)
	case opNot:
		b.WriteString("NOT ")
		n.kids[0].writeIn(b, precNot)
	case opIsNull:
		n.kids[0].writeIn(b, precSum)
		b.WriteString(n.negation(" IS NULL", " IS NOT NULL"))
	case opIn:
		n.kids[0].writeIn(b, precSum)
		n.writeCall(b, n.negation(" IN (", " NOT IN ("), n.kids[1:])
	case opLike:
		n.kids[0].writeIn(b, precSum)
		b.WriteString(n.negation(" LIKE ", " NOT LIKE "))
		n.kids[1].writeIn(b, precSum)
		if len(n.kids) > 2 {
			b.WriteString(" ESCAPE ")
			n.kids[2].writeIn(b, precSum)
		}
	default:
		n.writeInfix(b)
	}
}

// writeInfix writes operands with their operator between them. Left operands of
// the same strength need no parentheses, right ones do; comparisons, which do
// not associate, need them on both sides.
func (n *node) writeInfix(b *strings.Builder) {
	in := infix[n.op]
	for i, kid := range n.kids {
		if i > 0 {
			b.WriteString(" " + in.text + " ")
		}
		if i == 0 && in.prec != precCompare {
			kid.writeIn(b, in.prec)
		} else {
			kid.writeIn(b, in.prec+1)
		}
	}
}

// writeIn writes n where an operation of at least precedence prec is required.
func (n *node) writeIn(b *strings.Builder, prec int) {
	if n.prec() >= prec {
		n.write(b)
		return
	}
	b.WriteByte('(')
	n.write(b)
	b.WriteByte(')')
}

func (n *node) writeCall(b *strings.Builder, open string, kids []*node) {
	b.WriteString(open)
	for i, kid := range kids {
		if i > 0 {
			b.WriteString(", ")
		}
		kid.write(b)
	}
	b.WriteByte(')')
}

func (n *node) negation(plain, negated string) string {
	if n.negated {
		return negated
	}
	return plain
}
