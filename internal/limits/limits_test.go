// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// page is the table for users.
const page = "../../docs/guide/limits.md"

// Every limit is in the page, with its value; every row of the page is a limit.
func TestGuideListsEveryLimit(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(raw), "## What a peer can make the broker hold") // a table of its own
	rows := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| limit") && !strings.HasPrefix(line, "| ---") {
			rows++
		}
	}
	if rows != len(table) {
		t.Errorf("%s has %d rows, there are %d limits", page, rows, len(table))
	}
	for _, l := range table {
		if want := fmt.Sprintf("| %s | %s |", l.What, value(l)); !strings.Contains(text, want) {
			t.Errorf("%s has no row that begins with\n%s", page, want)
		}
	}
}

// value is a limit as the page writes it.
func value(l row) string {
	if l.Unit == Bytes {
		switch {
		case l.Most%(1<<20) == 0:
			return fmt.Sprintf("%d MiB", l.Most>>20)
		default:
			return fmt.Sprintf("%d KiB", l.Most>>10)
		}
	}
	n := strconv.FormatInt(l.Most, 10)
	for i := len(n) - 3; i > 0; i -= 3 {
		n = n[:i] + "," + n[i:]
	}
	return strings.TrimSpace(n + " " + string(l.Unit))
}

// A constant that is not in table would not be in the page.
func TestTableHasEveryConstant(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "limits.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("table.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, d := range f.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, spec := range gen.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				n++
				if !strings.Contains(string(text), `", `+name.Name+", ") {
					t.Errorf("the constant %s is not in table", name.Name)
				}
			}
		}
	}
	if n != len(table) {
		t.Errorf("%d constants, %d rows in table", n, len(table))
	}
}

func TestErrorSaysWhatIsAllowed(t *testing.T) {
	if err := CheckText("the session id", strings.Repeat("ü", 128), 128); err != nil {
		t.Errorf("128 characters: %v, want nil", err)
	}
	err := CheckText("the session id", strings.Repeat("ü", 129), 128)
	if want := "the session id: 129 characters, at most 128 are allowed"; err == nil || err.Error() != want || !errors.Is(err, ErrExceeded) {
		t.Errorf("129 characters: %v, want %q", err, want)
	}
	err = CheckCount("messages in the batch", 2, 1)
	if want := "messages in the batch: 2, at most 1 are allowed"; err == nil || err.Error() != want {
		t.Errorf("two of one: %v, want %q", err, want)
	}
	if err := CheckBytes("x", 1, 1); err != nil {
		t.Errorf("one of one byte: %v, want nil", err)
	}
}
