// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"sync"

	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/message"
)

const (
	// chunkCost is what a chunk takes beside its bytes.
	chunkCost = 4 << 10
	// eventOverhead is about how much larger an event is when it is delivered.
	eventOverhead = 160
)

// chunk is events of one receiver, encoded one after the other.
type chunk struct {
	payloads endpoint.Payloads
	sent     int   // how many of them the endpoint has taken
	next     int64 // number of the event behind the last one
	charge   int64 // what it takes
}

// chunks that were sent.
var spareChunks sync.Pool

// newChunk returns an empty chunk with space for so many bytes. They are charged whether
// there is memory or not: what the receiver has read cannot leave otherwise. Each has few
// of them, and reads nothing more while memory is short.
func (c *links) newChunk(size int) *chunk {
	charge := int64(size + chunkCost)
	c.Memory().Charge(charge)
	c.held.Add(charge)
	out, ok := spareChunks.Get().(*chunk)
	if !ok {
		out = new(chunk)
	}
	out.payloads.Bytes, out.payloads.Ends = buffer(size), out.payloads.Ends[:0]
	out.sent, out.next, out.charge = 0, 0, charge
	return out
}

// append adds the event that w is at.
func (out *chunk) append(w *message.EventWriter) {
	out.payloads.Bytes = w.Append(out.payloads.Bytes)
	out.payloads.Ends = append(out.payloads.Ends, len(out.payloads.Bytes))
}

// mostBatches is how many bytes of batches go into one delivery, unless a single one is
// larger: so much fits into a frame of most peers.
const mostBatches = 60 << 10

// appendBatch adds a batch as it is stored, to the last delivery if that is not large.
func (out *chunk) appendBatch(b *message.EventBatch) {
	p, from := &out.payloads, 0
	if n := len(p.Ends); n > 0 {
		if n > 1 {
			from = p.Ends[n-2]
		}
		if len(p.Bytes)-from+b.Size() <= mostBatches {
			p.Ends = p.Ends[:n-1]
		}
	}
	p.Bytes = b.AppendTo(p.Bytes)
	p.Ends = append(p.Ends, len(p.Bytes))
	out.next = b.First + int64(b.Count)
}

// recycle takes a chunk back once it was sent.
func (out *chunk) recycle() {
	recycle(out.payloads.Bytes)
	out.payloads.Bytes = nil
	spareChunks.Put(out)
}
