// SPDX-License-Identifier: Apache-2.0

// Package format is the bytes of a log on disk: headers of segments and batches,
// frames, and the manifest. docs/format/journal.md draws every byte.
//
// # Promise
//
//   - What is decoded is what was encoded, or it is refused: with one of the reasons
//     here, or, for a manifest, with a [DamageError]. Bytes that were moved, or that an
//     earlier use of a recycled file has left, are refused as well: checksums start from
//     a seed of the segment and the offset in it.
//   - No length that was decoded reaches beyond the bytes that were given.
//   - Stores of earlier versions are read.
//
// # Files
//
// segment.go has the headers and frames of segments, frames.go goes through a batch,
// manifest.go and segments.go are the manifest.
//
// # Not here
//
// Files, and in which order they are written: package wal.
package format
