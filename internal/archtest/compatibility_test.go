// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// claim is a link to a test: its name, and its file.
var claim = regexp.MustCompile("\\[`([^`]+)`\\]\\(\\.\\./\\.\\./([^)]+)\\)")

// claimFaults reports what is wrong with a page of claims: rows of tables whose second
// cell is a status and whose last names tests. read returns the text of a file of the
// module.
func claimFaults(page string, read func(name string) (string, error)) (faults []string, rows int) {
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) == 1 || len(cells) == 6 && (cells[2] == "" || cells[2] == "---") { // no row, or the head of a table
			continue
		}
		if len(cells) != 6 {
			faults = append(faults, fmt.Sprintf("%s: %d cells, want 4", strings.TrimSpace(line), len(cells)-2))
			continue
		}
		rows++
		feature, status, how, tests := cells[1], cells[2], cells[3], cells[4]
		if !slices.Contains([]string{"supported", "different", "not"}, status) {
			faults = append(faults, fmt.Sprintf("%s: %q is no status", feature, status))
		}
		if status != "supported" && how == "" {
			faults = append(faults, fmt.Sprintf("%s is %s, without a reason", feature, status))
		}
		claims := claim.FindAllStringSubmatch(tests, -1)
		if len(claims) == 0 && status != "not" {
			faults = append(faults, fmt.Sprintf("%s is %s, without a test", feature, status))
		}
		for _, c := range claims {
			text, err := read(c[2])
			if err != nil {
				faults = append(faults, fmt.Sprintf("%s: %v", feature, err))
			} else if !hasTest(c[2], text, c[1]) {
				faults = append(faults, fmt.Sprintf("%s: %s has no test %q", feature, c[2], c[1]))
			}
		}
	}
	return faults, rows
}

// hasTest reports whether a file has a test, as its language writes one.
func hasTest(file, text, name string) bool {
	switch path.Ext(file) {
	case ".go":
		return strings.Contains(text, "\nfunc "+name+"(t *testing.T)")
	case ".mjs":
		return strings.Contains(text, fmt.Sprintf("  it(%q, ", name))
	case ".py":
		return strings.Contains(text, "    def "+name+"(self)")
	}
	return false
}

// Every claim of docs/guide/compatibility.md names a test that exists.
func TestCompatibilityNamesItsTests(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "guide", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	faults, rows := claimFaults(string(page), func(name string) (string, error) {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		return string(text), err
	})
	for _, f := range faults {
		t.Error(f)
	}
	if rows < 50 {
		t.Errorf("the page has %d rows", rows)
	}
}

// The check finds what it is for.
func TestClaimsAreChecked(t *testing.T) {
	read := func(name string) (string, error) {
		if name != "a_test.go" {
			return "", os.ErrNotExist
		}
		return "\nfunc TestA(t *testing.T) {}\n", nil
	}
	for row, fault := range map[string]string{
		"| a | supported | | [`TestA`](../../a_test.go) |\n":     "",
		"| a | not | later | |\n":                                "",
		"| a | supported | | |\n":                                "without a test",
		"| a | not | | |\n":                                      "without a reason",
		"| a | different | | [`TestA`](../../a_test.go) |\n":     "without a reason",
		"| a | perhaps | x | [`TestA`](../../a_test.go) |\n":     "no status",
		"| a | supported | | [`TestB`](../../a_test.go) |\n":     "no test",
		"| a | supported | | [`TestA`](../../other_test.go) |\n": "not exist",
		"| a | supported | x | [`Test`](../../a_test.go) |\n":    "no test",
		"| feature | | how, and why | shown by |\n":              "",
		"| a | supported | [`TestA`](../../a_test.go) |\n":       "3 cells",
		"| --- | --- | --- | --- |\n":                            "",
	} {
		got, _ := claimFaults(row, read)
		if (fault == "") != (len(got) == 0) || fault != "" && !strings.Contains(strings.Join(got, "\n"), fault) {
			t.Errorf("%s: %q, want %q", strings.TrimSpace(row), got, fault)
		}
	}
}
