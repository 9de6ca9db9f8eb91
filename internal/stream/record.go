// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"math"

	"github.com/triagemq/triagemq/internal/machine"
)

// The kinds of record. They are on disk and never change; zero is none.
// docs/format/hub-records.md draws them.
const (
	kindCreated  = 1 // nothing follows
	kindAppend   = 2 // first, batch
	kindAppendBy = 3 // first, batch, producer
	kindSeal     = 4 // block
	kindTrim     = 5 // first that is kept
	kindProducer = 6 // producer, last id assigned
	kindBlocks   = 7 // of a snapshot: flags, blocks
	kindState    = 8 // of a snapshot: everything but blocks; its last record
)

// flagFirst says that the record is the first of its snapshot.
const flagFirst = 1

func writeBatch(out *machine.Effects, b *Batch) {
	out.Uint(uint64(b.First))
	out.Uint(uint64(b.Count))
	out.Uint(uint64(b.At))
	out.Ref(b.Body)
}

func readSeq(r *machine.Reader) SeqNo { return SeqNo(r.UpTo(uint64(maxSeq))) }

func readMillis(r *machine.Reader) int64 { return int64(r.UpTo(math.MaxInt64)) }

// readSince reads a time that is written as its difference to another, modulo 2⁶⁴: it may be
// before that, where a clock was set right.
func readSince(r *machine.Reader, last int64) int64 {
	at := uint64(last) + r.Uint()
	if at > math.MaxInt64 {
		r.Fail()
	}
	return int64(at)
}

func readBatch(r *machine.Reader) Batch {
	b := Batch{First: readSeq(r)}
	b.Count = uint32(r.UpTo(uint64(min(maxSeq-b.First, math.MaxUint32))))
	b.At = readMillis(r)
	b.Body = r.Ref()
	if b.Count == 0 || b.Body.At == 0 {
		r.Fail()
	}
	return b
}

func writeProducer(out *machine.Effects, p Producer) {
	out.Fixed(p.ID)
	out.Uint(uint64(p.Epoch))
	out.Uint(uint64(p.Seq))
}

func readProducer(r *machine.Reader) Producer {
	return Producer{ID: r.Fixed(), Epoch: int16(r.UpTo(math.MaxInt16)), Seq: int32(r.UpTo(math.MaxInt32))}
}

// writeBlock writes a block as its difference to the one before; the zero value is none.
func writeBlock(out *machine.Effects, b, last *Block) {
	out.Uint(uint64(b.First - last.End))
	out.Uint(uint64(b.End - b.First))
	out.Uint(uint64(b.From - last.To))
	out.Uint(uint64(b.To - b.From))
	out.Uint(b.Bodies.At - last.Bodies.At)
	out.Uint(uint64(b.Bodies.Size))
	out.Uint(b.Index.At - b.Bodies.At)
	out.Uint(uint64(b.Index.Size))
}

func readBlock(r *machine.Reader, last *Block) (b Block) {
	b.First = last.End + SeqNo(r.UpTo(uint64(maxSeq-last.End)))
	b.End = b.First + SeqNo(r.UpTo(uint64(maxSeq-b.First)))
	b.From = readSince(r, last.To)
	b.To = readSince(r, b.From)
	b.Bodies.At = last.Bodies.At + r.UpTo(math.MaxUint64-last.Bodies.At)
	b.Bodies.Size = r.Uint32()
	b.Index.At = b.Bodies.At + r.UpTo(math.MaxUint64-b.Bodies.At)
	b.Index.Size = r.Uint32()
	if b.End == b.First || b.Bodies.At == 0 || b.Index.Size == 0 && b.End-b.First > math.MaxUint32 {
		r.Fail()
	}
	return b
}
