// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/filter/value"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
)

// Action is a parsed rule action: what a rule changes in its copy of a message.
// It never changes itself.
type Action struct {
	statements []statement
	steps      int // of all statements together
}

// statement is SET name = expr, or REMOVE name when expr is nil.
type statement struct {
	name Name
	expr *Expr
}

// Change is what an action does to one property.
type Change struct {
	Name   Name
	Value  value.Value // null is a value that user properties can have
	Remove bool        // instead of setting Value
}

// ParseAction reads the statements of an action, within the default limits. The
// error is a [*syntaxError].
func ParseAction(sql string, params Params) (*Action, error) {
	return parseLimits{}.ParseAction(sql, params)
}

// ParseAction reads the statements of an action. Between two of them there may be a
// semicolon.
func (l parseLimits) ParseAction(sql string, params Params) (*Action, error) {
	p, err := newParser(sql, params, l)
	if err != nil {
		return nil, err
	}
	a := &Action{steps: p.limits.Steps}
	for {
		if len(a.statements) == p.limits.Statements {
			return nil, p.lex.fail(p.tok.pos, "one more statement", fmt.Sprintf("at most %d", p.limits.Statements))
		}
		s, err := p.statement()
		if err != nil {
			return nil, err
		}
		a.statements = append(a.statements, s)
		if s.expr != nil {
			a.steps = max(a.steps-(p.limits.Steps-s.expr.steps), 0) // its nodes
		}
		more, err := p.accept(tokSymbol, ";")
		if err != nil {
			return nil, err
		}
		if p.tok.kind == tokEnd {
			return a, nil
		}
		if !more && !p.at(tokKeyword, "SET") && !p.at(tokKeyword, "REMOVE") {
			return nil, p.unexpected(afterStatement(s))
		}
	}
}

func afterStatement(s statement) string {
	if s.expr == nil {
		return "SET, REMOVE, ';' or the end of the text"
	}
	return afterOperand(s.expr.root, "SET, REMOVE, ';' or the end of the text")
}

// statement reads SET property = value, or REMOVE property.
func (p *parser) statement() (s statement, err *syntaxError) {
	set := p.at(tokKeyword, "SET")
	if !set && !p.at(tokKeyword, "REMOVE") {
		return s, p.unexpected("SET or REMOVE")
	}
	if err = p.advance(); err != nil {
		return s, err
	}
	if s.name, err = p.target(); err != nil || !set {
		return s, err
	}
	if err = p.expect(tokSymbol, "=", "'='"); err != nil {
		return s, err
	}
	root, err := p.expression(precNone)
	if err != nil {
		return s, err
	}
	if bad := checkKinds(root); bad != nil {
		return s, p.lex.fail(bad.node.pos, bad.found, bad.want)
	}
	s.expr = &Expr{root: root}
	s.expr.compile(p.limits.Steps)
	if bad := s.checkValue(); bad != nil {
		return s, p.lex.fail(bad.node.pos, bad.found, bad.want)
	}
	return s, nil
}

// target reads the property that a statement changes. Invariant 2: of the system
// properties only those a sender may set.
func (p *parser) target() (Name, *syntaxError) {
	t := p.tok
	if t.kind != tokName && t.kind != tokDelimited {
		return Name{}, p.unexpected("the name of a property")
	}
	if err := p.advance(); err != nil {
		return Name{}, err
	}
	n, err := p.property(t)
	if err != nil {
		return Name{}, err
	}
	if n.name.System != NotSystem && !n.name.System.Settable() {
		return Name{}, p.lex.fail(n.pos, n.name.String()+", which only the broker sets", "a property that a sender can set")
	}
	return n.name, nil
}

// Reserved returns the first property that a changes and that rules cannot change, empty if
// there is none. [Edit] leaves it as it is.
func (a *Action) Reserved() string {
	for _, s := range a.statements {
		if s.name.System == NotSystem && message.IsReserved(s.name.User) {
			return s.name.User
		}
	}
	return ""
}

// checkValue finds a constant that its system property can never take.
func (s statement) checkValue() *kindError {
	n := s.expr.root
	if s.name.System == NotSystem || !n.constant() || !n.val.Known() {
		return nil
	}
	kind := s.name.System.kind()
	if _, ok := value.Convert(n.val, kind); !ok {
		return &kindError{n, n.describe(), "a " + kind.String() + " for " + s.name.String()}
	}
	return nil
}

// String returns the canonical form.
func (a *Action) String() string {
	var b strings.Builder
	for i, s := range a.statements {
		if i > 0 {
			b.WriteString("; ")
		}
		if s.expr == nil {
			b.WriteString("REMOVE " + s.name.String())
		} else {
			b.WriteString("SET " + s.name.String() + " = " + s.expr.String())
		}
	}
	return b.String()
}

// Apply returns what the action changes in the message, each property once. A
// statement uses the results of those before it. On an error, which is an
// [*evalError], nothing must be changed.
func (a *Action) Apply(v View) ([]Change, error) {
	shared := MessageSteps
	return a.ApplyWithin(v, &shared)
}

// ApplyWithin is Apply for one of the actions on a message, which share [MessageSteps]: shared is
// what those before have left. When they are used up, each has as few as a rule has then.
func (a *Action) ApplyWithin(v View, shared *int) ([]Change, error) {
	o := overlay{View: v}
	steps := min(a.steps, max(*shared, fewSteps))
	*shared -= steps + len(a.statements)
	defer func() { *shared += max(steps, 0) }()
	for _, s := range a.statements {
		c, err := s.apply(&o, &steps)
		if err != nil {
			return nil, err
		}
		if reason := o.put(c); reason != "" {
			return nil, s.refuse(reason)
		}
	}
	return o.changes, nil
}

func (s statement) apply(o *overlay, steps *int) (Change, error) {
	if s.expr == nil {
		return Change{Name: s.name, Value: value.MakeNull(), Remove: true}, nil
	}
	v, err := s.expr.eval(o, steps)
	if err != nil {
		return Change{}, err
	}
	switch {
	case v.Kind() == value.Opaque:
		return Change{}, s.refuse("its type cannot be copied")
	case s.name.System != NotSystem:
		return s.applySystem(v)
	case !v.Known():
		return Change{Name: s.name, Value: value.MakeNull()}, nil
	}
	if existing := o.User(s.name.User); existing != nil {
		v = v.As(*existing)
	}
	return Change{Name: s.name, Value: v}, nil
}

// applySystem converts to the type of the property. Null clears it.
func (s statement) applySystem(v value.Value) (Change, error) {
	if !v.Known() {
		return Change{Name: s.name, Value: value.MakeNull(), Remove: true}, nil
	}
	c, ok := value.Convert(v, s.name.System.kind())
	if !ok {
		return Change{}, s.refuse(fmt.Sprintf("%s is not a %v", shorten(v.String()), s.name.System.kind()))
	}
	return Change{Name: s.name, Value: c}, nil
}

func (s statement) refuse(reason string) *evalError {
	return &evalError{set: "SET " + s.name.String() + " = ", part: s.expr, Reason: reason}
}

// overlay is a message with the changes made so far.
type overlay struct {
	View
	changes []Change
	size    int // bytes of changes, about
}

// size is about how many bytes a change adds to a message.
func (c *Change) size() int { return len(c.Name.User) + len(c.Value.Str()) }

func (o *overlay) find(name Name) int {
	return slices.IndexFunc(o.changes, func(c Change) bool { return c.Name.same(name) })
}

// put adds a change, or replaces the earlier one of the same property, unless that
// would make the message too large: then it says why.
func (o *overlay) put(c Change) (reason string) {
	i := o.find(c.Name)
	if i < 0 {
		i = len(o.changes)
		o.changes = append(o.changes, Change{})
	}
	o.size += c.size() - o.changes[i].size()
	o.changes[i] = c
	switch {
	case c.size() > limits.Property:
		return fmt.Sprintf("it makes a property of more than %d bytes", limits.Property)
	case o.size > limits.Properties:
		return fmt.Sprintf("the action makes properties of more than %d bytes", limits.Properties)
	}
	return ""
}

// User returns a user property as changed.
func (o *overlay) User(name string) *value.Value {
	if i := o.find(Name{User: name}); i >= 0 {
		if o.changes[i].Remove {
			return nil
		}
		return &o.changes[i].Value
	}
	return o.View.User(name)
}

// System returns a system property as changed. One that was removed has the null
// that its change carries.
func (o *overlay) System(name SystemName) *value.Value {
	if i := o.find(Name{System: name}); i >= 0 {
		return &o.changes[i].Value
	}
	return o.View.System(name)
}
