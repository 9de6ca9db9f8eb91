// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const licence = "// SPDX-License-Identifier: Apache-2.0\n"

// source is one Go file.
type source struct {
	path string // relative to the module, with slashes
	text string
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// pkg returns the name of the file's package in pkgRules: its directory,
// without internal/.
func (s source) pkg() string {
	dir := filepath.ToSlash(filepath.Dir(s.path))
	return strings.TrimPrefix(dir, "internal/")
}

// clocks are the functions of package time that read, or wait for, the time.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}

// ownContexts are the files outside main that make a context of their own, because
// what they make lives longer than any caller's.
var ownContexts = []string{"client/lifetime.go", "triagetest/main.go"}

// sourceFaults reports what is wrong with one file.
func sourceFaults(s source) []string {
	var faults []string
	if !strings.HasPrefix(s.text, licence) {
		faults = append(faults, s.path+": the first line is not "+strings.TrimSpace(licence))
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, s.path, s.text, parser.SkipObjectResolution)
	if err != nil {
		return append(faults, err.Error())
	}
	if s.isTest() {
		return append(faults, sleepFaults(set, file)...)
	}
	for call := range calls(file, "time", clocks) {
		if isBelow(s.pkg(), corePkgs) {
			faults = append(faults, fmt.Sprintf("%s: time.%s in a state machine; time is an argument there", set.Position(call.Pos()), call.Sel.Name))
		}
	}
	for call := range calls(file, "context", []string{"Background", "TODO"}) {
		if file.Name.Name != "main" && !slices.Contains(ownContexts, s.path) {
			faults = append(faults, fmt.Sprintf("%s: context.%s outside main", set.Position(call.Pos()), call.Sel.Name))
		}
	}
	return faults
}

// sleepFaults reports every sleep of a test outside a synctest bubble: there it
// takes real time, and may be too short on a busy machine.
func sleepFaults(set *token.FileSet, file *ast.File) []string {
	var faults []string
	bubbles := bubbles(file)
	for call := range calls(file, "time", []string{"Sleep"}) {
		inside := func(b *ast.CallExpr) bool { return b.Pos() <= call.Pos() && call.End() <= b.End() }
		if !slices.ContainsFunc(bubbles, inside) {
			faults = append(faults, fmt.Sprintf("%s: time.Sleep outside synctest.Test", set.Position(call.Pos())))
		}
	}
	return faults
}

// bubbles returns the calls of synctest.Test, with what they run.
func bubbles(file *ast.File) []*ast.CallExpr {
	tests := slices.Collect(calls(file, "testing/synctest", []string{"Test"}))
	var all []*ast.CallExpr
	for node := range ast.Preorder(file) {
		if call, ok := node.(*ast.CallExpr); ok {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(tests, sel) {
				all = append(all, call)
			}
		}
	}
	return all
}

// calls yields each use of the named functions of an imported package, under
// any name by which the file imports it.
func calls(file *ast.File, importPath string, names []string) func(yield func(*ast.SelectorExpr) bool) {
	return func(yield func(*ast.SelectorExpr) bool) {
		local := localName(file, importPath)
		if local == "" {
			return
		}
		for node := range ast.Preorder(file) {
			sel, ok := node.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			on, ok := sel.X.(*ast.Ident)
			if ok && on.Name == local && slices.Contains(names, sel.Sel.Name) && !yield(sel) {
				return
			}
		}
	}
}

// localName returns what a file calls an imported package; empty if it does not
// import it.
func localName(file *ast.File, importPath string) string {
	for _, spec := range file.Imports {
		if imported, _ := strconv.Unquote(spec.Path.Value); imported != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// sources returns every Go file of the repository, nested modules included.
func sources(t *testing.T) []source {
	t.Helper()
	var files []source
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, path)
		files = append(files, source{filepath.ToSlash(rel), string(text)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestSources(t *testing.T) {
	for _, s := range sources(t) {
		report(t, sourceFaults(s))
	}
}

func TestSourcesNoticeWhatIsForbidden(t *testing.T) {
	const clock = licence + "package p\nimport \"time\"\nvar t = time.Now()\n"
	const renamed = licence + "package p\nimport clock \"time\"\nvar t = clock.After\n"
	const harmless = licence + "package p\nimport \"time\"\nvar t time.Time\n"
	const background = licence + "package p\nimport \"context\"\nvar c = context.Background()\n"
	const inMain = licence + "package main\nimport \"context\"\nvar c = context.Background()\n"
	const sleep = licence + "package p\nimport \"time\"\nfunc f() { time.Sleep(1) }\n"
	const bubble = licence + "package p\nimport (\n\"testing/synctest\"\n\"time\"\n)\nfunc f() { synctest.Test(nil, func() { time.Sleep(1) }) }\n"
	for _, c := range []struct {
		path, text string
		want       int
	}{
		{"internal/queueserver/a_test.go", sleep, 1},
		{"internal/queueserver/a_test.go", bubble, 0},
		{"internal/queueserver/a.go", sleep, 0},
		{"internal/queue/a.go", clock, 1},
		{"internal/queue/a.go", renamed, 1},
		{"internal/queue/a.go", harmless, 0},
		{"internal/queue/a_test.go", clock, 0},
		{"internal/policy/sub/a.go", clock, 1},
		{"internal/queueserver/a.go", clock, 0},
		{"internal/queueserver/a.go", background, 1},
		{"internal/queueserver/a_test.go", background, 0},
		{"cmd/triagemq/main.go", inMain, 0},
		{"client/a.go", background, 1},
		{"client/lifetime.go", background, 0},
		{"client/a.go", "package p\n", 1},
		{"client/a.go", licence + "package\n", 1},
	} {
		if got := sourceFaults(source{c.path, c.text}); len(got) != c.want {
			t.Errorf("%s:\n%sfaults %q, want %d", c.path, c.text, got, c.want)
		}
	}
}
