// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the files instead of comparing")

// public lists what users import, with how many names each may export before we
// look twice.
var public = []struct {
	name  string
	limit int
}{
	{"client", 140},       // each outcome has a method; members of groups and their checkpoints have 30 names
	{"client/admin", 100}, // a method for each operation, a type for each answer
	{"worker", 70},        // methods, outcomes and causes count too
	{"processor", 70},     // positions, policies and errors count too
	{"processor/blobstore", 10},
	{"tracing", 10},
	{"triagetest", 10},
}

// record is the file of a package.
func record(name string) string { return strings.ReplaceAll(name, "/", "-") + ".txt" }

func TestSurfaceIsAsRecorded(t *testing.T) {
	for _, p := range public {
		t.Run(p.name, func(t *testing.T) {
			dir := filepath.Join("..", p.name)
			if _, err := os.Stat(dir); os.IsNotExist(err) {
				t.Skip("not built yet")
			}
			lines, names := surface(t, dir)
			got := strings.Join(lines, "\n") + "\n"
			file := record(p.name)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range difference(lines, strings.Split(strings.TrimSpace(string(want)), "\n")) {
				t.Errorf("%s (run `make api` if this is intended)", d)
			}
			if names >= p.limit {
				t.Errorf("package %s exports %d names, want less than %d", p.name, names, p.limit)
			}
		})
	}
}

// difference says which lines are new and which are gone.
func difference(got, want []string) []string {
	var out []string
	for _, line := range got {
		if !slices.Contains(want, line) {
			out = append(out, "not recorded: "+line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			out = append(out, "gone: "+line)
		}
	}
	return out
}

// surface returns one line for each exported name and field of the package in
// dir, sorted, and the number of names, fields not counted. It fails the test
// when a signature mentions an internal package.
func surface(t *testing.T, dir string) (lines []string, names int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		internal := internalImports(tree)
		ast.FileExports(tree)
		for _, decl := range tree.Decls {
			noInternal(t, set, decl, internal)
			found := describe(set, decl)
			for _, line := range found {
				if !strings.HasPrefix(line, "field ") {
					names++
				}
			}
			lines = append(lines, found...)
		}
	}
	slices.Sort(lines)
	return lines, names
}

// internalImports returns the names by which a file knows internal packages.
func internalImports(f *ast.File) []string {
	var names []string
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if !strings.Contains(path, "/internal/") {
			continue
		}
		name := filepath.Base(path)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names = append(names, name)
	}
	return names
}

func noInternal(t *testing.T, set *token.FileSet, decl ast.Decl, internal []string) {
	t.Helper()
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			return false
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && slices.Contains(internal, pkg.Name) {
				t.Errorf("%s: internal type %s.%s in a public declaration", set.Position(n.Pos()), pkg.Name, n.Sel.Name)
			}
		}
		return true
	})
}

// describe returns the lines of one declaration that FileExports left something
// of.
func describe(set *token.FileSet, decl ast.Decl) []string {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv != nil && !ast.IsExported(strings.TrimPrefix(text(set, decl.Recv.List[0].Type), "*")) {
			return nil
		}
		bare := *decl
		bare.Doc, bare.Body = nil, nil
		return []string{text(set, &bare)}
	case *ast.GenDecl:
		var lines []string
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					if name.IsExported() {
						lines = append(lines, decl.Tok.String()+" "+name.Name)
					}
				}
			case *ast.TypeSpec:
				lines = append(lines, describeType(set, spec)...)
			}
		}
		return lines
	}
	return nil
}

func describeType(set *token.FileSet, spec *ast.TypeSpec) []string {
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return []string{"type " + spec.Name.Name + " " + text(set, spec.Type)}
	}
	lines := []string{"type " + spec.Name.Name + " struct"}
	for _, field := range structure.Fields.List {
		kind := text(set, field.Type)
		if len(field.Names) == 0 {
			lines = append(lines, "field "+spec.Name.Name+" embeds "+kind)
		}
		for _, name := range field.Names {
			lines = append(lines, "field "+spec.Name.Name+"."+name.Name+" "+kind)
		}
	}
	return lines
}

// text prints a node on one line.
func text(set *token.FileSet, node any) string {
	var b strings.Builder
	if err := printer.Fprint(&b, set, node); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func TestEveryRecordedPackageIsListed(t *testing.T) {
	files, err := fs.Glob(os.DirFS("."), "*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		listed := false
		for _, p := range public {
			listed = listed || record(p.name) == file
		}
		if !listed {
			t.Errorf("%s is recorded but not in the table of public packages", file)
		}
	}
}
