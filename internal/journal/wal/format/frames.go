// SPDX-License-Identifier: Apache-2.0

package format

import (
	"iter"

	"github.com/triagemq/triagemq/internal/journal"
)

// CheckBatch checks the frames of a batch at off whose header is right, and
// returns where in it the first fault is.
func CheckBatch(head BatchHead, b []byte, seed uint32, off uint64) (int, error) {
	digest, number := uint32(0), head.First
	for at := BatchHeader; at < len(b); {
		f, size, err := DecodeFrame(b[at:], seed, off+uint64(at))
		if err != nil {
			return at, err
		}
		if f.Number != number {
			return at, ErrNumber
		}
		digest = AddToDigest(digest, b[at:])
		number += f.Records()
		at += size
	}
	if digest != head.Digest || number != head.First+uint64(head.Count) {
		return 0, ErrDigest
	}
	return 0, nil
}

// Frames yields the frames of a checked batch, each with its place in it.
func Frames(b []byte) iter.Seq2[int, Frame] {
	return func(yield func(int, Frame) bool) {
		for at := BatchHeader; at < len(b); {
			length := int(le.Uint32(b[at+4:]))
			f := Frame{
				Shard:   journal.Shard(le.Uint32(b[at+8:])),
				Epoch:   le.Uint32(b[at+12:]),
				Number:  le.Uint64(b[at+16:]),
				Payload: b[at+FrameHeader : at+FrameHeader+length : at+FrameHeader+length],
			}
			if !yield(at, f) {
				return
			}
			at += FrameSize(length)
		}
	}
}
