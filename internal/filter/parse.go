// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"cmp"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/triagemq/triagemq/internal/filter/value"
)

// parseLimits bounds what the parser accepts, and what the evaluation of that may
// cost. Zero fields mean the default. Incoming texts are limited to limits.SQL,
// which is shorter. The callers check that, so that longer texts that were
// accepted earlier stay readable.
type parseLimits struct {
	Length     int // bytes of text; default 64 KiB
	Depth      int // levels of nesting; default 200
	Statements int // SET and REMOVE in one action; default 32
	Steps      int // work of one evaluation, or of one action; default 262,144
}

func (l parseLimits) withDefaults() parseLimits {
	l.Length = cmp.Or(l.Length, 64<<10)
	l.Depth = cmp.Or(l.Depth, 200)
	l.Statements = cmp.Or(l.Statements, 32)
	l.Steps = cmp.Or(l.Steps, defaultSteps)
	return l
}

// Parse reads a condition, within the default limits. The error is a
// [*syntaxError].
func Parse(sql string, params Params) (*Expr, error) { return parseLimits{}.Parse(sql, params) }

// ParseValue reads an expression of any type, such as a fair key.
func ParseValue(sql string, params Params) (*Expr, error) {
	return parseLimits{}.ParseValue(sql, params)
}

// Parse reads a condition.
func (l parseLimits) Parse(sql string, params Params) (*Expr, error) {
	return l.parse(sql, params, checkCondition)
}

// ParseValue reads an expression of any type.
func (l parseLimits) ParseValue(sql string, params Params) (*Expr, error) {
	return l.parse(sql, params, checkKinds)
}

func (l parseLimits) parse(sql string, params Params, check func(*node) *kindError) (*Expr, error) {
	p, err := newParser(sql, params, l)
	if err != nil {
		return nil, err
	}
	root, err := p.expression(precNone)
	if err != nil {
		return nil, err
	}
	if p.tok.kind != tokEnd {
		return nil, p.unexpected(afterOperand(root, "the end of the text"))
	}
	if bad := check(root); bad != nil {
		return nil, p.lex.fail(bad.node.pos, bad.found, bad.want)
	}
	x := &Expr{root: root}
	x.compile(p.limits.Steps)
	return x, nil
}

// parser is a Pratt parser: each operator has a strength, and an operand belongs
// to the stronger of its two neighbours.
type parser struct {
	lex    lexer
	tok    token // the next one, not yet used
	params Params
	limits parseLimits
	depth  int // calls of expression in progress
}

func newParser(text string, params Params, limits parseLimits) (*parser, *syntaxError) {
	p := &parser{lex: lexer{text: text}, params: params, limits: limits.withDefaults()}
	if len(text) > p.limits.Length {
		return nil, p.lex.fail(0, fmt.Sprintf("%d bytes of text", len(text)), fmt.Sprintf("at most %d", p.limits.Length))
	}
	for i, r := range text {
		if _, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
			return nil, p.lex.fail(i, "a byte that is not UTF-8", "text in UTF-8")
		}
	}
	return p, p.advance()
}

func (p *parser) advance() (err *syntaxError) {
	p.tok, err = p.lex.next()
	return err
}

func (p *parser) at(kind tokenKind, text string) bool {
	return p.tok.kind == kind && p.tok.text == text
}

// accept consumes the token if it is that one.
func (p *parser) accept(kind tokenKind, text string) (bool, *syntaxError) {
	if !p.at(kind, text) {
		return false, nil
	}
	return true, p.advance()
}

// expect uses up a token that must be there.
func (p *parser) expect(kind tokenKind, text, want string) *syntaxError {
	if !p.at(kind, text) {
		return p.unexpected(want)
	}
	return p.advance()
}

func (p *parser) unexpected(want string) *syntaxError {
	return p.lex.fail(p.tok.pos, p.tok.describe(), want)
}

// expression reads operations that bind at least as tightly as floor.
func (p *parser) expression(floor int) (*node, *syntaxError) {
	if p.depth++; p.depth > p.limits.Depth {
		return nil, p.tooDeep(p.tok.pos)
	}
	defer func() { p.depth-- }()

	left, err := p.prefix(floor)
	if err != nil {
		return nil, err
	}
	compared := false // a = b = c has no meaning
	for {
		prec := p.infixPrec()
		if prec < max(floor, precOr) {
			return left, nil
		}
		if prec == precCompare {
			if compared {
				return nil, p.unexpected(afterOperand(left, "the end of the text"))
			}
			compared = true
		}
		if prec < precCompare {
			compared = false
		}
		if left, err = p.operation(left, prec); err != nil {
			return nil, err
		}
	}
}

// infixPrec returns the strength of the next token as an operator that follows an
// operand, or precNone.
func (p *parser) infixPrec() int {
	switch p.tok.kind {
	case tokSymbol:
		if o, ok := symbolOps[p.tok.text]; ok {
			return infix[o].prec
		}
	case tokKeyword:
		switch p.tok.text {
		case "AND":
			return precAnd
		case "OR":
			return precOr
		case "IS", "IN", "LIKE", "NOT":
			return precCompare
		}
	}
	return precNone
}

var symbolOps = map[string]op{
	"+": opAdd, "-": opSub, "*": opMul, "/": opDiv, "%": opMod,
	"=": opEqual, "<>": opNotEqual, "!=": opNotEqual,
	"<": opLess, "<=": opLessEqual, ">": opGreater, ">=": opGreaterEqual,
}

// operation reads the operator and what follows it.
func (p *parser) operation(left *node, prec int) (*node, *syntaxError) {
	if p.tok.kind == tokKeyword && prec == precCompare {
		return p.test(left)
	}
	o := symbolOps[p.tok.text]
	switch {
	case p.at(tokKeyword, "AND"):
		o = opAnd
	case p.at(tokKeyword, "OR"):
		o = opOr
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	right, err := p.expression(prec + 1)
	if err != nil {
		return nil, err
	}
	if o == opAnd || o == opOr {
		return p.join(o, left, right)
	}
	return p.build(&node{op: o, pos: left.pos, kids: []*node{left, right}})
}

// join makes one AND of several, and likewise OR, however they were nested: both
// are associative in three-valued logic, and kids keep their order.
func (p *parser) join(o op, left, right *node) (*node, *syntaxError) {
	n := left
	if left.op != o {
		n = &node{op: o, pos: left.pos, kids: []*node{left}, depth: left.depth + 1}
	}
	if right.op == o {
		n.kids = append(n.kids, right.kids...)
		n.depth = max(n.depth, right.depth)
	} else {
		n.kids = append(n.kids, right)
		n.depth = max(n.depth, right.depth+1)
	}
	return n, p.checkDepth(n)
}

// test reads IS NULL, IN and LIKE with their optional NOT.
func (p *parser) test(left *node) (*node, *syntaxError) {
	n := &node{pos: left.pos, kids: []*node{left}}
	is := p.at(tokKeyword, "IS")
	if is {
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	var err *syntaxError
	if n.negated, err = p.accept(tokKeyword, "NOT"); err != nil {
		return nil, err
	}
	switch {
	case is:
		n.op = opIsNull
		err = p.expect(tokKeyword, "NULL", n.negation("NULL or NOT NULL", "NULL"))
	case p.at(tokKeyword, "IN"):
		n.op = opIn
		err = p.list(n)
	case p.at(tokKeyword, "LIKE"):
		n.op = opLike
		err = p.pattern(n)
	default:
		err = p.unexpected("IN or LIKE")
	}
	if err != nil {
		return nil, err
	}
	return p.build(n)
}

// list reads IN ( value, … ) into the kids of n.
func (p *parser) list(n *node) *syntaxError {
	if err := p.advance(); err != nil {
		return err
	}
	if err := p.expect(tokSymbol, "(", "'(' and a list of values"); err != nil {
		return err
	}
	for {
		kid, err := p.expression(precSum)
		if err != nil {
			return err
		}
		n.kids = append(n.kids, kid)
		more, err := p.accept(tokSymbol, ",")
		if err != nil {
			return err
		}
		if !more {
			return p.expect(tokSymbol, ")", "',' or ')'")
		}
	}
}

// pattern reads LIKE value [ESCAPE value] into the kids of n.
func (p *parser) pattern(n *node) *syntaxError {
	if err := p.advance(); err != nil {
		return err
	}
	kid, err := p.expression(precSum)
	if err != nil {
		return err
	}
	n.kids = append(n.kids, kid)
	found, err := p.accept(tokKeyword, "ESCAPE")
	if err != nil || !found {
		return err
	}
	if kid, err = p.expression(precSum); err != nil {
		return err
	}
	n.kids = append(n.kids, kid)
	return nil
}

// build completes a node and rejects trees that are too deep for evaluation.
func (p *parser) build(n *node) (*node, *syntaxError) {
	n.depth = 1
	for _, kid := range n.kids {
		n.depth = max(n.depth, kid.depth+1)
	}
	return n, p.checkDepth(n)
}

func (p *parser) checkDepth(n *node) *syntaxError {
	if n.depth > p.limits.Depth {
		return p.tooDeep(n.pos)
	}
	return nil
}

func (p *parser) tooDeep(pos int) *syntaxError {
	return p.lex.fail(pos, "deeper nesting", fmt.Sprintf("at most %d levels", p.limits.Depth))
}

// prefix reads the beginning of an operand.
func (p *parser) prefix(floor int) (*node, *syntaxError) {
	pos := p.tok.pos
	var o op
	prec := precUnary
	switch {
	case p.at(tokSymbol, "-"):
		o = opNegate
	case p.at(tokSymbol, "+"):
		o = opPlus
	case p.at(tokKeyword, "NOT") && floor <= precNot:
		o, prec = opNot, precNot
	default:
		return p.operand(floor)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	// Minus zero is not one constant: as an integer it would lose its sign, and
	// the canonical form of --0 with it.
	if o == opNegate && p.tok.kind == tokNumber && p.tok.val != value.MakeInt(0) {
		return p.negative(pos)
	}
	kid, err := p.expression(prec)
	if err != nil {
		return nil, err
	}
	return p.build(&node{op: o, pos: pos, kids: []*node{kid}})
}

// negative reads a number after a minus sign as one constant, because the
// smallest integer has no positive counterpart to negate.
func (p *parser) negative(pos int) (*node, *syntaxError) {
	v := p.tok.val
	if n, whole := v.Uint(); whole {
		v = value.MakeInt(-int64(n)) // of 1<<63 this is 1<<63, which is right
	} else {
		v = value.MakeDouble(-v.Double())
	}
	return &node{op: opConst, val: v, pos: pos, depth: 1}, p.advance()
}

// afterOperand says what may follow n, for errors.
func afterOperand(n *node, end string) string {
	if n.prec() >= precSum {
		return "an operator, AND, OR or " + end
	}
	return "AND, OR or " + end
}

// isMinMagnitude reports a literal that only a minus sign makes an integer.
func isMinMagnitude(v value.Value) bool {
	n, whole := v.Uint()
	return whole && n == math.MaxInt64+1
}
