// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"errors"
	"flag"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rewrite is a flag of the test binary; see make api.
var rewrite = flag.Bool("rewrite", false, "rewrite api/*.txt")

// public are the packages that users import.
var public = []string{"client", "worker", "processor", "triagetest"}

// TestAPI compares what the public packages export with api/*.txt, so that a
// change of the surface shows in the diff of the change.
func TestAPI(t *testing.T) {
	for _, name := range public {
		t.Run(name, func(t *testing.T) {
			dir, golden := filepath.Join(root(t), name), filepath.Join(root(t), "api", name+".txt")
			got := exported(t, dir)
			if got == "" {
				t.Skip("the package does not exist yet")
			}
			if *rewrite {
				if err := errors.Join(os.MkdirAll(filepath.Dir(golden), 0o755), os.WriteFile(golden, []byte(got), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if errors.Is(err, fs.ErrNotExist) {
				t.Skipf("api/%s.txt does not exist yet; make api writes it", name)
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != got {
				t.Errorf("the exported names of %s changed; if that is meant, run make api\n%s", name, apiDifference(string(want), got))
			}
		})
	}
}

// exported returns the exported declarations of the package in dir, sorted,
// without comments and bodies.
func exported(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var decls []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		decls = append(decls, exportedDecls(t, set, parsed)...)
	}
	slices.Sort(decls)
	return strings.Join(decls, "")
}

func exportedDecls(t *testing.T, set *token.FileSet, file *ast.File) []string {
	t.Helper()
	ast.FileExports(file)
	var decls []string
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv != nil && !ast.IsExported(receiver(decl.Recv.List[0].Type)) {
				continue
			}
			decl.Body = nil
		case *ast.GenDecl:
			if decl.Tok == token.IMPORT {
				continue
			}
		}
		var b bytes.Buffer
		if err := format.Node(&b, set, decl); err != nil {
			t.Fatal(err)
		}
		decls = append(decls, b.String()+"\n")
	}
	return decls
}

// receiver returns the name of a method's type.
func receiver(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		return receiver(expr.X)
	case *ast.IndexExpr:
		return receiver(expr.X)
	case *ast.Ident:
		return expr.Name
	}
	return ""
}

// apiDifference lists the lines that only one of two listings has.
func apiDifference(want, got string) string {
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	var b strings.Builder
	for _, line := range wants {
		if !slices.Contains(gots, line) {
			b.WriteString("- " + line + "\n")
		}
	}
	for _, line := range gots {
		if !slices.Contains(wants, line) {
			b.WriteString("+ " + line + "\n")
		}
	}
	return b.String()
}

func TestExportedLeavesOutWhatUsersCannotSee(t *testing.T) {
	const text = `package p
import "time"
// Comment.
type T struct {
	A time.Duration // why
	b int
}
func (T) M() int { return 1 }
func (*t) M() {}
func f() {}
const X = 1
const y = 2
`
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(exportedDecls(t, set, file), "")
	want := "type T struct {\n\tA time.Duration\n\t// contains filtered or unexported fields\n}\nfunc (T) M() int\nconst X = 1\n"
	if got != want {
		t.Errorf("exported:\n%s\nwant\n%s", got, want)
	}
}
