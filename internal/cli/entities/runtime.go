// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/cli"
)

// runtimeView is what an entity is like at the moment, as the API tells it.
type runtimeView struct {
	Active       int64 `json:"active"` // ready, locked and retrying
	Locked       int64 `json:"locked"`
	Retrying     int64 `json:"retrying"`
	Deferred     int64 `json:"deferred"`
	Scheduled    int64 `json:"scheduled"`
	Dead         int64 `json:"deadLetter"`
	Transfer     int64 `json:"transfer"`
	TransferDead int64 `json:"transferDeadLetter"`
	Bytes        int64 `json:"sizeInBytes"`

	Levels        []levelView `json:"levels"`
	Receivers     int         `json:"receivers"`
	Subscriptions int         `json:"subscriptions"`
	CreatedAt     time.Time   `json:"createdAt"`
	UpdatedAt     time.Time   `json:"updatedAt"`
	AccessedAt    time.Time   `json:"accessedAt"`
}

type levelView struct {
	Level  int       `json:"level"`
	Ready  int64     `json:"ready"`
	Oldest time.Time `json:"oldest"`
}

func (r runtimeView) total() int64 {
	return r.Active + r.Deferred + r.Scheduled + r.Dead + r.Transfer + r.TransferDead
}

// print shows everything about an entity: its properties, then its counts.
func (e entityView) print(w io.Writer) {
	t := cli.NewTable("  state", e.state())
	for _, name := range slices.Sorted(maps.Keys(e.Definition)) {
		switch name {
		case "name", "status", "rules", "authorizationRules": // told elsewhere, or not for every eye
		case "policy":
			t.Add("  "+name, policyInShort(e.Definition[name]))
		default:
			t.Add("  "+name, e.Definition[name])
		}
	}
	r := e.Runtime
	for _, c := range []struct {
		name  string
		value any
	}{
		{"created", cli.TimeText(r.CreatedAt)}, {"changed", cli.TimeText(r.UpdatedAt)}, {"used", cli.TimeText(r.AccessedAt)},
		{"receivers", r.Receivers}, {"size", cli.BytesText(r.Bytes)},
		{"active", fmt.Sprintf("%d, of which %d locked and %d retrying", r.Active, r.Locked, r.Retrying)},
		{"scheduled", r.Scheduled}, {"deferred", r.Deferred}, {"dead letters", r.Dead},
		{"to be forwarded", fmt.Sprintf("%d, and %d that could not be", r.Transfer, r.TransferDead)},
	} {
		t.Add("  "+c.name, c.value)
	}
	t.Print(w)
	if len(r.Levels) > 0 {
		fmt.Fprintln(w)
		levels := cli.NewTable("#LEVEL", "#READY", "OLDEST")
		for _, l := range r.Levels {
			levels.Add(l.Level, l.Ready, cli.TimeText(l.Oldest))
		}
		levels.Print(w)
	}
}

// policyInShort names the discipline and the classes of a policy; policy get shows
// all of it.
func policyInShort(policy any) string {
	fields, _ := policy.(map[string]any)
	discipline, ok := fields["discipline"].(string)
	if !ok {
		discipline = "strict"
	}
	var names []string
	classes, _ := fields["classes"].([]any)
	for _, c := range classes {
		class, _ := c.(map[string]any)
		names = append(names, fmt.Sprint(class["name"]))
	}
	if len(names) == 0 {
		return discipline
	}
	return discipline + ": " + strings.Join(names, ", ")
}

// readerTable lists entities that are read: queues and subscriptions.
func readerTable(views []entityView) *cli.Table {
	t := cli.NewTable("NAME", "STATE", "#ACTIVE", "#LOCKED", "#SCHEDULED", "#DEFERRED", "#DEAD", "#SIZE", "#RECEIVERS")
	for _, v := range views {
		r := v.Runtime
		t.Add(v.text("name"), v.state(), r.Active, r.Locked, r.Scheduled, r.Deferred, r.Dead, cli.BytesText(r.Bytes), r.Receivers)
	}
	return t
}
