// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A row of ARCHITECTURE.md that names a Go file, and in its last column functions.
var (
	lifeRow  = regexp.MustCompile("(?m)^\\|.*\\| `([a-z/0-9]+/[a-z_0-9]+\\.go)` \\| (.*) \\|$")
	funcName = regexp.MustCompile("`([A-Za-z.]+)`")
)

// The life of a message names the functions of every step. A reader finds each of them
// in the file of its row.
func TestArchitectureNamesFunctionsThatExist(t *testing.T) {
	top := root(t)
	text, err := os.ReadFile(filepath.Join(top, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := lifeRow.FindAllStringSubmatch(string(text), -1)
	if len(rows) < 20 {
		t.Fatalf("%d rows with files; the pattern does not fit the page", len(rows))
	}
	for _, row := range rows {
		there := functions(t, filepath.Join(top, filepath.FromSlash(row[1])))
		for _, name := range funcName.FindAllStringSubmatch(row[2], -1) {
			if !there[name[1]] {
				t.Errorf("ARCHITECTURE.md: %s has no function %s", row[1], name[1])
			}
		}
	}
}

// functions returns the functions of a file, methods as Type.Name.
func functions(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}
	names := map[string]bool{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			name = receiverName(f.Recv.List[0].Type) + "." + name
		}
		names[name] = true
	}
	return names
}

// receiverName returns the type of a receiver, without pointer and type parameters.
func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func TestFunctionsOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.go")
	src := strings.Join([]string{"package x", "func F() {}", "func (T) A() {}", "func (t *T) B() {}", "func (h *Held[T]) C() {}"}, "\n")
	if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	there := functions(t, path)
	for _, name := range []string{"F", "T.A", "T.B", "Held.C"} {
		if !there[name] {
			t.Errorf("%s was not found in %v", name, there)
		}
	}
}
