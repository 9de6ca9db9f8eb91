// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// exportedName is a name that an internal package declares for others.
type exportedName struct {
	pkg, name   string
	at          token.Position
	enumeration []string // of a constant: all of the same type, then the type, or ""
}

// mention is a name of a package, as another package writes it.
type mention struct{ pkg, name string }

// schemaPkg is the package of the JSON API. The description of the API names its
// types by reflection, so their names are public.
const schemaPkg = "internal/admin"

// unusedNames reports the exported names of internal packages that no other
// package mentions, tests included. Readers of a package then meet what callers
// need, and nothing else. Some need not be mentioned:
//   - Types in the declaration of another exported name: callers hold their values.
//   - Interfaces: a type can implement one without naming it.
//   - Constants of an enumeration whose type, or another constant, is mentioned.
func unusedNames(files []source) []string {
	var declared []exportedName
	mentioned := map[mention]bool{}
	set := token.NewFileSet()
	for _, s := range files {
		file, err := parser.ParseFile(set, s.path, s.text, parser.SkipObjectResolution)
		if err != nil {
			return []string{err.Error()}
		}
		mentions(file, mentioned)
		if dir := path.Dir(s.path); strings.HasPrefix(dir, "internal/") && !s.isTest() {
			declared = append(declared, exports(set, dir, file, mentioned)...)
		}
	}
	for _, d := range declared {
		if n := len(d.enumeration); n > 0 && mentioned[mention{d.pkg, d.name}] {
			mentioned[mention{d.pkg, d.enumeration[n-1]}] = true
		}
	}
	var faults []string
	for _, d := range declared {
		used := func(name string) bool { return name != "" && mentioned[mention{d.pkg, name}] }
		if !used(d.name) && !slices.ContainsFunc(d.enumeration, used) {
			faults = append(faults, fmt.Sprintf("%s: no other package mentions %s.%s", d.at, path.Base(d.pkg), d.name))
		}
	}
	return faults
}

// mentions adds the names that a file selects from packages of ours.
func mentions(file *ast.File, to map[mention]bool) {
	dirs := map[string]string{} // by the name in this file
	for _, spec := range file.Imports {
		importPath, _ := strconv.Unquote(spec.Path.Value)
		if dir, ours := strings.CutPrefix(importPath, module+"/"); ours {
			dirs[localName(file, importPath)] = dir
		}
	}
	for node := range ast.Preorder(file) {
		if sel, ok := node.(*ast.SelectorExpr); ok {
			if on, ok := sel.X.(*ast.Ident); ok && dirs[on.Name] != "" {
				to[mention{dirs[on.Name], sel.Sel.Name}] = true
			}
		}
	}
}

// exports returns the exported names that a file declares at package level, and
// adds to mentioned the types which their declarations contain.
func exports(set *token.FileSet, dir string, file *ast.File, mentioned map[mention]bool) []exportedName {
	var names []exportedName
	add := func(id *ast.Ident, enumeration []string) {
		if id.IsExported() {
			names = append(names, exportedName{dir, id.Name, set.Position(id.Pos()), enumeration})
		}
	}
	contain := func(owner string, in ast.Node) {
		for name := range exportedIdents(in) {
			if name != owner {
				mentioned[mention{dir, name}] = true
			}
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			owner := ""
			if decl.Recv == nil {
				add(decl.Name, nil)
			} else {
				owner = receiverName(decl.Recv.List[0].Type)
			}
			if token.IsExported(cmp.Or(owner, decl.Name.Name)) {
				contain(owner, decl.Type)
			}
		case *ast.GenDecl:
			enums := enumerations(decl)
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if _, ok := spec.Type.(*ast.InterfaceType); !ok && dir != schemaPkg {
						add(spec.Name, nil)
					}
					if spec.Name.IsExported() {
						contain(spec.Name.Name, spec.Type)
					}
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						add(id, enums[id.Name])
						if id.IsExported() && spec.Type != nil && decl.Tok == token.VAR {
							contain("", spec.Type)
						}
					}
				}
			}
		}
	}
	return names
}

// exportedIdents returns the exported names in a piece of syntax, without those
// of the fields and methods which it declares.
func exportedIdents(in ast.Node) map[string]bool {
	all, fields := map[string]bool{}, map[*ast.Ident]bool{}
	for node := range ast.Preorder(in) {
		switch node := node.(type) {
		case *ast.Field: // comes before its names
			for _, id := range node.Names {
				fields[id] = true
			}
		case *ast.Ident:
			if node.IsExported() && !fields[node] {
				all[node.Name] = true
			}
		}
	}
	return all
}

// enumerations returns, for each constant of a declaration, the constants of the
// same type in it, then the type, which may be empty. A constant without type and
// value repeats the one above.
func enumerations(decl *ast.GenDecl) map[string][]string {
	if decl.Tok != token.CONST {
		return nil
	}
	byType, typeOf, last := map[string][]string{}, map[string]string{}, ""
	for _, spec := range decl.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		if v.Type != nil || len(v.Values) > 0 {
			last = typeName(v)
		}
		for _, id := range v.Names {
			typeOf[id.Name] = last
			byType[last] = append(byType[last], id.Name)
		}
	}
	all := map[string][]string{}
	for name, of := range typeOf {
		all[name] = append(byType[of], of)
	}
	return all
}

// typeName returns the type that a constant is declared with; empty is none.
func typeName(v *ast.ValueSpec) string {
	if id, ok := v.Type.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func TestExportedNamesAreUsedByOthers(t *testing.T) {
	report(t, unusedNames(sources(t)))
}

func TestUnusedNamesAreNoticed(t *testing.T) {
	const head = "package p\n"
	const user = head + "import \"" + module + "/internal/q\"\n"
	for _, c := range []struct {
		declared, used string
		want           int
	}{
		{"func F() {}", "", 1},
		{"func F() {}", "var _ = q.F", 0},
		{"func F() {}", "var _ = other.F", 1},
		{"func f() {}", "", 0},
		{"var A, B int", "var _ = q.A", 1},
		{"type T struct{}", "", 1},
		{"type T struct{}", "var _ *q.T", 0},
		{"type T struct{ T *T }; func (T) With(T) T { return T{} }", "", 1},
		{"type T struct{}; func (T) M() {}; func F() *T { return nil }", "var _ = q.F", 0},
		{"type T struct{}; type U struct{ T int }", "var _ q.U", 1},
		{"type T struct{}; type U struct{ T T }", "var _ q.U", 0},
		{"type T struct{}; type u struct{ T T }; func (u) M(T) {}", "", 1},
		{"type T interface{ M() }", "", 0},
		{"type E int; const ( A E = iota; B )", "", 3},
		{"type E int; const ( A E = iota; B )", "var _ = q.B", 0},
		{"type E int; const ( A E = iota; B )", "var _ q.E", 0},
		{"const ( A = 1; B = 2 )", "var _ = q.B", 0},
		{"const ( A E = 1; B = 2 )", "var _ = q.B", 1},
		{"const A = 1; const B = 2", "var _ = q.B", 1},
	} {
		files := []source{{"internal/q/q.go", head + c.declared}, {"internal/p/p.go", user + c.used}}
		if got := unusedNames(files); len(got) != c.want {
			t.Errorf("%s, used by %q: faults %q, want %d", c.declared, c.used, got, c.want)
		}
	}
}
