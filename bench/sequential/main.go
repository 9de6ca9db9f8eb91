// SPDX-License-Identifier: Apache-2.0

// Command sequential measures what the disk alone takes in: writes of one size, one
// after the other, each synced, into files of 64 MiB as a journal has them. No log that
// syncs what it acknowledges can be quicker with the same bytes in each sync.
package main

import (
	"crypto/rand"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/triagemq/triagemq/internal/vfs"
)

const fileSize = 64 << 20

func main() {
	dir := flag.String("dir", os.TempDir(), "directory on the disk to measure")
	write := flag.Int("write", 1<<20, "bytes of a write")
	event := flag.Int("event", 256, "bytes of an event, for the rate in events")
	duration := flag.Duration("duration", 5*time.Second, "how long to write")
	flag.Parse()
	if *write < 1 || *write > fileSize || *event < 1 {
		log.Fatal("-write is outside 1..64 MiB, or -event is below 1")
	}
	n, took, err := measure(*dir, *write, *duration)
	if err != nil {
		log.Fatal(err)
	}
	rate := float64(n) * float64(*write) / took.Seconds()
	fmt.Printf("disk alone, writes of %d bytes, each synced\n  %.0f MB/s, %.0f events/s of %d bytes, %v each\n",
		*write, rate/1e6, rate/float64(*event), *event, (took / time.Duration(n)).Round(time.Microsecond))
}

// measure writes into new files, at most three of which exist at a time.
func measure(dir string, size int, duration time.Duration) (n int, took time.Duration, err error) {
	root, err := os.MkdirTemp(dir, "sequential")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(root)
	fsys := vfs.OS(root)
	block := make([]byte, size)
	rand.Read(block)
	began := time.Now()
	for number := 0; ; number++ {
		f, err := fsys.Create(fmt.Sprint(number))
		if err != nil {
			return 0, 0, err
		}
		if err := f.Allocate(fileSize); err != nil {
			return 0, 0, err
		}
		for off := 0; off+size <= fileSize; off += size {
			if _, err := f.WriteAt(block, int64(off)); err != nil {
				return 0, 0, err
			}
			if err := f.Sync(); err != nil {
				return 0, 0, err
			}
			n++
			if took = time.Since(began); took >= duration {
				return n, took, f.Close()
			}
		}
		if err := f.Close(); err != nil {
			return 0, 0, err
		}
		if number >= 3 {
			if err := fsys.Remove(fmt.Sprint(number - 3)); err != nil {
				return 0, 0, err
			}
		}
	}
}
