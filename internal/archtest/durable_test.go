// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// durable says for each kind of record in which row of the table "What a peer can make the
// broker hold" (docs/guide/limits.md) it stands: what it makes durable is in memory again
// after each start, and somebody must be charged for it. The key is the package and the
// constant. own marks records that say nothing that their writer had not said before, or
// that only make state smaller.
var durable = map[string]string{
	"engine kindBody":          rowBodies,
	"engine kindUnit":          own, // the record of a machine: see below
	"engine kindSnapshotBegin": own,
	"engine kindSnapshotPart":  own,
	"engine kindSnapshotUnit":  own,
	"engine kindSnapshotEnd":   own,

	"queueserver kindDefine":    rowDefinitions,
	"queueserver kindRedefine":  rowDefinitions,
	"queueserver kindDrop":      own,
	"queueserver kindPublished": own,
	"queueserver kindNote":      rowMeasurements,

	"queue/record KindEnqueue":      rowMessages,
	"queue/record KindRemoved":      own,
	"queue/record KindFailed":       own,
	"queue/record KindDeferred":     own,
	"queue/record KindRewrite":      rowMessages,
	"queue/record KindActivate":     own,
	"queue/record KindReclassify":   own,
	"queue/record KindState":        rowMessages,
	"queue/record KindConfig":       rowDefinitions,
	"queue/record KindSettings":     rowDefinitions,
	"queue/record KindStarted":      rowMessages,
	"queue/record KindArrivalTimes": rowMessages,
	"queue/record KindReasons":      rowMessages,
	"queue/record KindReturned":     rowMessages,
	"queue/record KindRetries":      rowMessages,
	"queue/record KindLocks":        rowMessages,
	"queue/record KindUnlocked":     own,
	"queue/record KindSaved":        rowMessages,
	"queue/record KindSnapshot":     own,
	"queue/record KindWindow":       rowMessages,
	"queue/record KindStates":       rowMessages,
	"queue/record KindEntries":      own,
	"queue/record KindEnd":          own,
	"queue/record KindHeader":       own,

	"streamserver kindPartition": rowPartitions,
	"streamserver kindGroups":    rowGroups,

	"stream kindCreated":  rowPartitions,
	"stream kindAppend":   rowEvents,
	"stream kindAppendBy": rowProducers,
	"stream kindSeal":     own,
	"stream kindTrim":     own,
	"stream kindProducer": rowProducers,
	"stream kindBlocks":   own,
	"stream kindState":    own,

	"group kindCreated":    rowGroups,
	"group kindMember":     rowGroups,
	"group kindGone":       own,
	"group kindOwner":      rowGroups,
	"group kindCheckpoint": rowGroups,
	"group kindHold":       rowGroups,
	"group kindClaim":      rowGroups,
	"group kindForget":     own,
	"group kindBegin":      own,
	"group kindEnd":        own,
}

// The rows of the table.
const (
	own             = ""
	rowBodies       = "Bodies of messages and events on disk"
	rowMessages     = "Waiting messages"
	rowDefinitions  = "Definitions of entities"
	rowMeasurements = "Definitions of entities"
	rowPartitions   = "Partitions of event hubs"
	rowEvents       = "Places of events in memory"
	rowProducers    = "Producers of event hubs that send idempotently"
	rowGroups       = "Members, claims, checkpoints and pauses of consumer groups"
)

// A record that a client can cause has a row that says what bounds it and who is charged.
func TestEveryDurableRecordHasABound(t *testing.T) {
	found := map[string]bool{}
	for _, s := range sources(t) {
		if s.isTest() || !slices.Contains([]string{"engine", "queueserver", "queue/record", "streamserver", "stream", "group"}, s.pkg()) {
			continue
		}
		for _, name := range recordKinds(t, s) {
			found[s.pkg()+" "+name] = true
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		if _, ok := durable[kind]; !ok {
			t.Errorf("%s: say in durable which row of docs/guide/limits.md has what it makes durable", kind)
		}
	}
	rows := rowsOfLimits(t)
	for _, kind := range slices.Sorted(maps.Keys(durable)) {
		if !found[kind] {
			t.Errorf("%s is in durable, and there is no such kind of record", kind)
		}
		if row := durable[kind]; row != own && !slices.ContainsFunc(rows, func(r string) bool { return strings.HasPrefix(r, row) }) {
			t.Errorf("%s: docs/guide/limits.md has no row that begins with %q", kind, row)
		}
	}
}

// recordKinds returns the constants of a file that are kinds of record.
func recordKinds(t *testing.T, s source) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), s.path, s.text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range file.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.CONST {
			continue
		}
		for _, spec := range d.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if rest, ok := strings.CutPrefix(strings.ToLower(name.Name), "kind"); ok && rest != "" {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// rowsOfLimits returns the rows of the table of what a peer can make the broker hold.
func rowsOfLimits(t *testing.T) (rows []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "docs/guide/limits.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "## What a peer can make the broker hold")
	if !ok {
		t.Fatal("docs/guide/limits.md has no section of what a peer can make the broker hold")
	}
	for line := range strings.Lines(table) {
		if cell, ok := strings.CutPrefix(line, "| "); ok {
			rows = append(rows, cell)
		}
	}
	return rows
}
