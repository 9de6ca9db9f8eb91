// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/vfs"
)

// Listing is what the directory of a store holds.
type Listing struct {
	Segments []uint64 // in order
	Spares   []string
	Manifest bool // either file of it is there
}

// List returns what is in the root of fsys.
func List(fsys vfs.FS) (Listing, error) {
	names, err := fsys.List(".")
	if err != nil {
		return Listing{}, fmt.Errorf("list files: %w", err)
	}
	var l Listing
	for _, name := range names {
		if n, ok := segmentNumber(name); ok {
			l.Segments = append(l.Segments, n)
		} else if strings.HasSuffix(name, SpareSuffix) || strings.HasSuffix(name, ReserveSuffix) {
			l.Spares = append(l.Spares, name)
		} else if name == format.ManifestName || name == format.ManifestCopy {
			l.Manifest = true
		}
	}
	slices.Sort(l.Segments)
	return l, nil
}
