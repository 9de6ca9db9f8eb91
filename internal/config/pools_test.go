// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
)

func TestPoolsExampleParses(t *testing.T) {
	pools, err := parsePools("pools.yaml", []byte(PoolsExample()))
	if err != nil {
		t.Fatal(err)
	}
	if len(pools) != 4 || !pools[1].Sessions || pools[0].Preempt == nil || pools[0].Preempt.MinRun.Std() != 2*time.Second || pools[3].Scale.Max != 8 ||
		pools[0].Env["RENDER_CACHE"] != "/var/cache/renders" || len(pools[2].Sources) != 2 {
		t.Errorf("%+v", pools)
	}
}

// Every field has a key: a file that sets all leaves none at zero.
func TestPoolKeysAreComplete(t *testing.T) {
	pools, err := parsePools("pools.yaml", []byte(`
pools:
  - name: all
    sources: [{entity: a, weight: 3}]
    select: weight
    minPriority: low
    maxPriority: high
    exec: [run]
    dir: /tmp
    env: {A: 1}
    killAfter: 1s
    maxOutput: 1KiB
    reply: true
    slots: 2
    buffer: 3
    durableLocks: true
    timeout: 1m
    retry: 1s..5m
    grace: 10s
    preempt: {minRun: 1s, budget: 3}
    scale: {min: 1, max: 2, coolDown: 5s}
    windows: [Sat]
    whenSpare: true
    spareBeside: [a]
    latestStart: 6h
  - {source: b, exec: [run], sessions: true, sessionIdle: 5s} # which does not combine with the others
`))
	if err != nil {
		t.Fatal(err)
	}
	pools[0].Sessions, pools[0].SessionIdle = pools[1].Sessions, pools[1].SessionIdle
	var check func(path string, v reflect.Value)
	check = func(path string, v reflect.Value) {
		if v.IsZero() {
			t.Errorf("%s is zero", path)
			return
		}
		switch v.Kind() {
		case reflect.Pointer:
			check(path, v.Elem())
		case reflect.Slice:
			check(path, v.Index(0))
		case reflect.Struct:
			for i := range v.NumField() {
				check(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		}
	}
	check("pool", reflect.ValueOf(pools[0]))
	if got := pools[0].Env["A"]; got != "1" {
		t.Errorf("A = %q", got)
	}
}

func TestPoolsFaultsAllAtOnce(t *testing.T) {
	_, err := parsePools("pools.yaml", []byte(`pools:
  - name: a
    source: q
    sources: [r]
    exec: [run]
    slotz: 3
    slots: many
    retry: 5m..1s
  - source: q
    windows: ["Mon-Fry"]
    latestStart: 1h
    scale: {min: 3, max: 2}
    select: best
  - name: a
    exec: [run]
    env: {"A=B": x}
    latestStart: 1h
    sources:
      - entity: s
        weight: 2
      - s
`))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"pools.yaml:2:5: pools[0]: source and sources are both set",
		"pools.yaml:6:5: pools[0].slotz: unknown key; did you mean slots?",
		`pools.yaml:7:12: pools[0].slots: expected a whole number, found "many"`,
		`pools.yaml:8:12: pools[0].retry: in "5m..1s" the longest wait is below the first`,
		"pools.yaml:9:5: pools[1].exec: is missing",
		`pools.yaml:10:15: pools[1].windows[0]: window "Mon-Fry": "Fry" is not a day`,
		"pools.yaml:12:26: pools[1].scale.max: must be at least 1, and at least the minimum",
		"pools.yaml:13:13: pools[1].select: is none of order, level, weight",
		"pools.yaml:14:11: pools[2].name: a is the name of pools[0] too",
		`pools[2].env: "A=B" cannot be the name of a variable`,
		"pools.yaml:17:18: pools[2].latestStart: needs windows or whenSpare",
		"pools.yaml:20:17: pools[2].sources[0].weight: needs select: weight",
		"pools.yaml:21:9: pools[2].sources[1]: s is there twice",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing: %s", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
}

func TestEmptyPoolsFile(t *testing.T) {
	for _, text := range []string{"", "pools:", "pools: []", "pools: 3", "- a", "pools: [null]", "pools: {"} {
		if _, err := parsePools("pools.yaml", []byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	if _, err := LoadPools(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want that there is no such file", err)
	}
}

func TestParseRetry(t *testing.T) {
	second := entity.Duration(time.Second)
	for text, want := range map[string]Retry{"10s": {10 * second, 10 * second}, "1s..5m": {second, 300 * second}} {
		if got, err := ParseRetry(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "..", "1s..", "0s", "-1s", "soon", "5m..1s"} {
		if got, err := ParseRetry(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzPools(f *testing.F) {
	f.Add(PoolsExample())
	f.Add("pools: [{source: a, exec: [b], preempt: true}]")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = parsePools("pools.yaml", []byte(text)) // must not panic
	})
}
