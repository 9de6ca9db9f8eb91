// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strings"

	"github.com/triagemq/triagemq/internal/filter/value"
)

// operand reads a constant, property, parameter, function or parentheses.
func (p *parser) operand(floor int) (*node, *syntaxError) {
	t := p.tok
	n := &node{pos: t.pos, depth: 1}
	switch t.kind {
	case tokNumber:
		if isMinMagnitude(t.val) {
			return nil, p.unexpected("an integer of 64 bits")
		}
		n.op, n.val = opConst, t.val
	case tokString:
		n.op, n.val = opConst, value.MakeString(t.text)
	case tokParam:
		v, ok := p.params.lookup(t.text)
		if !ok {
			return nil, p.unexpected("a parameter with a value")
		}
		n.op, n.param, n.val, n.fixed = opParam, t.text, v, true
	case tokName, tokDelimited:
		return p.nameOrCall()
	case tokKeyword:
		switch t.text {
		case "TRUE", "FALSE":
			n.op, n.val = opConst, value.MakeBool(t.text == "TRUE")
		case "NULL":
			n.op, n.val = opConst, value.MakeNull()
		case "EXISTS":
			return p.exists()
		default:
			return nil, p.unexpected(wantOperand(floor))
		}
	case tokSymbol:
		if t.text == "(" {
			return p.parentheses()
		}
		return nil, p.unexpected(wantOperand(floor))
	default:
		return nil, p.unexpected(wantOperand(floor))
	}
	return n, p.advance()
}

func wantOperand(floor int) string {
	if floor >= precCompare {
		return "a value"
	}
	return "a condition"
}

func (p *parser) parentheses() (*node, *syntaxError) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.expression(precNone)
	if err != nil {
		return nil, err
	}
	return n, p.expect(tokSymbol, ")", afterOperand(n, "')'"))
}

// exists reads EXISTS ( property ).
func (p *parser) exists() (*node, *syntaxError) {
	n := &node{op: opExists, pos: p.tok.pos}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if err := p.expect(tokSymbol, "(", "'(' and a property"); err != nil {
		return nil, err
	}
	if p.tok.kind != tokName && p.tok.kind != tokDelimited {
		return nil, p.unexpected("the name of a property")
	}
	at := p.tok
	kid, err := p.nameOrCall()
	if err != nil {
		return nil, err
	}
	if kid.op == opNewID {
		return nil, p.lex.fail(at.pos, "newid()", "the name of a property")
	}
	n.kids = []*node{kid}
	if n, err = p.build(n); err != nil {
		return nil, err
	}
	return n, p.expect(tokSymbol, ")", "')'")
}

// nameOrCall reads a property, or a function if a parenthesis follows its name.
func (p *parser) nameOrCall() (*node, *syntaxError) {
	t := p.tok
	if err := p.advance(); err != nil {
		return nil, err
	}
	if t.kind == tokName && p.at(tokSymbol, "(") {
		return p.call(t)
	}
	return p.property(t)
}

// property reads the rest of [scope.]name, whose first word is t.
func (p *parser) property(t token) (*node, *syntaxError) {
	n := &node{op: opProperty, pos: t.pos, depth: 1, name: Name{User: t.text}}
	dot, err := p.accept(tokSymbol, ".")
	if err != nil || !dot {
		return n, err
	}
	last := p.tok
	switch last.kind {
	case tokName, tokDelimited:
	case tokKeyword: // after a dot nothing but a name can be meant
		last.text = last.raw
	default:
		return nil, p.unexpected("the name of a property")
	}
	switch {
	case strings.EqualFold(t.text, "user"):
		n.name = Name{User: last.text}
	case strings.EqualFold(t.text, "sys"):
		system, ok := systemName(last.text)
		if !ok {
			return nil, p.lex.fail(last.pos, last.describe(), "a system property, such as sys.Label or sys.MessageId")
		}
		n.name = Name{System: system}
	default:
		return nil, p.lex.fail(t.pos, t.describe()+" before a dot",
			"sys or user; a name with a dot in it is written ["+shorten(t.text+"."+last.text)+"]")
	}
	return n, p.advance()
}

// call reads a function, whose name is t, from the parenthesis on.
func (p *parser) call(t token) (*node, *syntaxError) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	n := &node{pos: t.pos}
	switch strings.ToLower(t.text) {
	case "newid":
		n.op = opNewID
	case "property", "p":
		n.op = opNamed
		kid, err := p.expression(precSum)
		if err != nil {
			return nil, err
		}
		n.kids = []*node{kid}
	default:
		return nil, p.lex.fail(t.pos, "function "+shorten(t.text), "newid(), property(name) or p(name)")
	}
	if err := p.expect(tokSymbol, ")", "')'"); err != nil {
		return nil, err
	}
	return p.build(n)
}
