// SPDX-License-Identifier: Apache-2.0

// Command fdatasync measures what the disk alone takes to make a small record
// durable: write and sync, one at a time, over space that was written before. No
// broker that syncs before it answers can be quicker than that; run beside another
// load, it shows what a busy processor adds to it.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/vfs"
)

func main() {
	dir := flag.String("dir", os.TempDir(), "directory on the disk to measure")
	count := flag.Int("count", 3000, "syncs")
	pause := flag.Duration("pause", 200*time.Microsecond, "between them")
	beside := flag.String("beside", "", "what else runs meanwhile, for the heading")
	flag.Parse()
	took, err := measure(*dir, *count, *pause)
	if err != nil {
		log.Fatal(err)
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1))].Round(time.Microsecond)
	}
	heading := "disk alone"
	if *beside != "" {
		heading = "disk beside " + *beside
	}
	fmt.Printf("%s, %d writes of 512 bytes, each synced\n", heading, len(took))
	fmt.Printf("  sync     p50 %v  p90 %v  p99 %v  p99.9 %v  max %v\n", at(0.5), at(0.9), at(0.99), at(0.999), at(1))
}

func measure(dir string, count int, pause time.Duration) (took []time.Duration, err error) {
	root, err := os.MkdirTemp(dir, "fdatasync")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(root)
	f, err := vfs.OS(root).Create("probe")
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	block := make([]byte, 512)
	for i := range count {
		if _, err := f.WriteAt(block, int64(i)*512); err != nil {
			return nil, err
		}
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	for i := range count {
		from := time.Now()
		if _, err := f.WriteAt(block, int64(i)*512); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(from))
		time.Sleep(pause)
	}
	return took, nil
}
