// SPDX-License-Identifier: Apache-2.0

// Command processors measures how fleets of event processors settle: with the broker as
// the coordinator, in our store mode, and with the processor of the Event Hubs SDK for Go.
// Each instance is a process of its own. It prints a table, and how many events one instance
// handles with a handler that does nothing.
//
// Store mode and the SDK look at their store every second here, and take records for dead
// after six: a tenth of their defaults. The store is in the memory of this process.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	if text := os.Getenv(instanceVariable); text != "" {
		runInstance(text)
		return
	}
	var (
		only   = flag.String("only", "", "run only scenarios and fleets whose name contains this")
		speed  = flag.Int("speed", 3_000_000, "events that one instance handles for the last line; 0: do not measure it")
		wide   = flag.Int("wide", 65_536, "events of 8 KiB in 128 partitions, to measure the memory of one instance; 0: do not measure it")
		binary = flag.String("triagemq", "", "broker to run; default: one that is built")
	)
	flag.Parse()
	if err := run(*only, measured{*speed, *wide}, *binary); err != nil {
		log.Fatal(err)
	}
}

// kinds are the fleets that are compared.
var kinds = []kind{
	{name: "coordinator"},
	{name: "store, balanced", store: true},
	{name: "store, greedy", store: true, greedy: true},
	{name: "SDK for Go, balanced", store: true, sdk: true},
	{name: "SDK for Go, greedy", store: true, sdk: true, greedy: true},
}

type kind struct {
	name               string
	store, greedy, sdk bool
}

var scenarios = []scenario{
	{"32 partitions, 1 to 2 instances", 32, 1, 1, false, 16},
	{"32 partitions, 4 to 5 instances", 32, 4, 1, false, 6},
	{"32 partitions, cold start of 4", 32, 0, 4, false, 32},
	{"32 partitions, crash of 1 of 4", 32, 4, 0, true, 8},
	{"128 partitions, 8 to 9 instances", 128, 8, 1, false, 14},
}

type scenario struct {
	name       string
	partitions int
	before     int // instances that are settled
	join       int
	crash      bool
	least      int // moves
}

// result is what one run gave.
type result struct {
	settled time.Duration
	moves   int
	twice   int
	events  int
	failed  error
}

// measured is with how many events one instance is measured.
type measured struct{ speed, wide int }

func run(only string, events measured, binary string) error {
	dir, err := os.MkdirTemp("", "processors-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if binary == "" {
		binary = filepath.Join(dir, "triagemq")
		if err := build(".", binary, "./cmd/triagemq"); err != nil {
			return err
		}
	}
	sdk := filepath.Join(dir, "sdk")
	if err := build("bench/processors/sdk", sdk, "."); err != nil {
		return err
	}
	b, err := startBroker(dir, binary)
	if err != nil {
		return err
	}
	defer b.stop()

	ctx := context.Background()
	fmt.Println("| scenario | fleet | settled after | moves (minimum) | handled twice, of |")
	fmt.Println("| --- | --- | ---: | ---: | ---: |")
	for i, s := range scenarios {
		for j, k := range kinds {
			if !strings.Contains(s.name+" "+k.name, only) {
				continue
			}
			r := measure(ctx, b, sdk, s, k, hubName(i, j))
			if r.failed != nil {
				fmt.Printf("| %s | %s | %v | | |\n", s.name, k.name, r.failed)
				continue
			}
			fmt.Printf("| %s | %s | %.2f s | %d (%d) | %d of %d |\n", s.name, k.name, r.settled.Seconds(), r.moves, s.least, r.twice, r.events)
		}
	}
	if events.wide > 0 {
		most, err := measureMemory(ctx, b, events.wide)
		if err != nil {
			return err
		}
		fmt.Printf("\none instance, %d partitions, 8 KiB events in batches of 10, a handler that is slow for ten seconds: %d MiB of memory at most\n", widePartitions, most)
	}
	if events.speed == 0 {
		return nil
	}
	rates, least, err := measureSpeed(ctx, b, events.speed)
	if err != nil {
		return err
	}
	slices.Sort(rates)
	fmt.Printf("\none instance, 16 partitions, 256-byte events in batches of 100, a handler that does nothing: %d to %d events a second (%d runs), %v of its processor for an event\n",
		rates[0], rates[len(rates)-1], len(rates), least)
	return nil
}

func hubName(scenario, kind int) string { return fmt.Sprintf("hub-%d-%d", scenario, kind) }

func build(dir, out, pkg string) error {
	cmd := exec.Command("go", "build", "-o", out, pkg)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s in %s (run it at the top of the repository): %w\n%s", pkg, dir, err, text)
	}
	return nil
}
