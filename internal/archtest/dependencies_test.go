// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/triagemq/triagemq"

// pkg is what go list prints about a package.
type pkg struct {
	ImportPath string
	Name       string
	Doc        string
	Dir        string
	GoFiles    []string
	Imports    []string
}

// name returns the package's name in pkgRules.
func (p pkg) name() string { return short(p.ImportPath) }

// short turns an import path of ours into a name of pkgRules, and others into
// the empty string.
func short(importPath string) string {
	rel, ours := strings.CutPrefix(importPath, module+"/")
	if !ours {
		return ""
	}
	return strings.TrimPrefix(rel, "internal/")
}

// ruleOf returns the row for a package: its own, or the nearest above it.
func ruleOf(name string) (pkgRule, bool) {
	for at := name; at != "."; at = path.Dir(at) {
		if r, ok := pkgRules[at]; ok {
			return r, true
		}
	}
	return pkgRule{}, false
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		below, wild := strings.CutSuffix(p, "*")
		return p == name || wild && strings.HasPrefix(name, below)
	})
}

// importFaults reports every import that the table does not allow.
func importFaults(pkgs []pkg) []string {
	var faults []string
	for _, p := range pkgs {
		r, ok := ruleOf(p.name())
		if !ok {
			faults = append(faults, fmt.Sprintf("%s has no row in pkgRules", p.name()))
			continue
		}
		for _, imported := range p.Imports {
			ours := short(imported)
			switch {
			case ours != "" && !matches(r.may, ours):
				faults = append(faults, fmt.Sprintf("%s imports %s; it may import %v", p.name(), ours, r.may))
			case ours == "" && isBelow(imported, r.never):
				faults = append(faults, fmt.Sprintf("%s imports %s; it must not import %v", p.name(), imported, r.never))
			}
		}
	}
	return faults
}

// isBelow reports whether an import is one of banned or lies below one.
func isBelow(imported string, banned []string) bool {
	return slices.ContainsFunc(banned, func(b string) bool { return imported == b || strings.HasPrefix(imported, b+"/") })
}

// docFaults reports every package without a proper package comment.
func docFaults(pkgs []pkg) []string {
	var faults []string
	for _, p := range pkgs {
		switch {
		case len(p.GoFiles) == 0: // tests only
		case p.Doc == "":
			faults = append(faults, p.name()+" has no package comment")
		case p.Name != "main" && !strings.HasPrefix(p.Doc, "Package "+p.Name+" "):
			faults = append(faults, fmt.Sprintf("the comment of %s begins with %q, want %q", p.name(), p.Doc, "Package "+p.Name+" …"))
		}
	}
	return faults
}

// root returns the directory of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// list returns the packages of the module, with and without the files of test
// builds.
func list(t *testing.T) []pkg {
	t.Helper()
	return append(listTagged(t, ""), listTagged(t, "invariants")...)
}

func listTagged(t *testing.T, tags string) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-tags="+tags, "-json=ImportPath,Name,Doc,Dir,GoFiles,Imports", "./...")
	cmd.Dir, cmd.Stderr = root(t), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := decoder.Decode(&p); err == io.EOF {
			return pkgs
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

// report fails the test with each fault once.
func report(t *testing.T, faults []string) {
	t.Helper()
	slices.Sort(faults)
	for _, f := range slices.Compact(faults) {
		t.Error(f)
	}
}

func TestImports(t *testing.T)     { report(t, importFaults(list(t))) }
func TestPackageDocs(t *testing.T) { report(t, docFaults(list(t))) }

func TestImportsNoticeWhatIsForbidden(t *testing.T) {
	of := func(name string, imports ...string) []pkg {
		return []pkg{{ImportPath: module + "/" + name, Name: path.Base(name), Imports: imports}}
	}
	for _, c := range []struct {
		pkgs []pkg
		want string
	}{
		{of("internal/queue", "time", module+"/internal/message"), ""},
		{of("internal/queue", module+"/internal/journal"), "queue imports journal"},
		{of("internal/queue", "sync"), "queue imports sync"},
		{of("internal/queue", "sync/atomic"), "queue imports sync/atomic"},
		{of("internal/queue", "math/rand/v2"), "queue imports math/rand/v2"},
		{of("internal/queueserver", module+"/internal/broker"), "queueserver imports broker"},
		{of("internal/journal/wal", module+"/internal/journal", module+"/internal/vfs"), ""},
		{of("internal/journal/wal", "os"), "journal/wal imports os"},
		{of("internal/entity", module+"/internal/message"), "entity imports message"},
		{of("internal/servicebus", module+"/internal/amqp/frame"), ""},
		{of("internal/servicebus", module+"/internal/queueserver"), "servicebus imports queueserver"},
		{of("client", module+"/internal/broker"), "client imports broker"},
		{of("internal/server", module+"/internal/queueserver", "os", "net"), ""},
		{of("examples/other", module+"/internal/broker"), "examples/other imports broker"},
		{of("internal/util"), "util has no row"},
	} {
		got := strings.Join(importFaults(c.pkgs), "\n")
		if got == "" != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%v: faults %q, want %q", c.pkgs, got, c.want)
		}
	}
}

func TestDocsNoticeWhatIsMissing(t *testing.T) {
	files := []string{"a.go"}
	for doc, want := range map[string]int{"Package queue is one queue.": 0, "": 1, "Queue stuff": 1, "Package queues is": 1} {
		p := pkg{ImportPath: module + "/internal/queue", Name: "queue", Doc: doc, GoFiles: files}
		if got := docFaults([]pkg{p}); len(got) != want {
			t.Errorf("comment %q: faults %q, want %d", doc, got, want)
		}
	}
}
