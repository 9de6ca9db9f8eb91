// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// The names of records, as docs/format/shard-records.md and queue-records.md have
// them. A dump shows what is on a disk, so it reads the documented format and not
// what the broker of today makes of it.
var (
	shardRecords = map[byte]string{
		1: "body", 2: "queue", 3: "create", 4: "update", 5: "drop", 6: "published",
		7: "snapshot begin", 8: "snapshot entity", 9: "snapshot queue", 10: "snapshot end", 11: "measurements",
	}
	queueRecords = map[byte]string{
		0x01: "enqueue", 0x02: "removed", 0x03: "failed", 0x04: "deferred", 0x05: "rewrite",
		0x06: "activate", 0x07: "reclassify", 0x08: "state", 0x09: "configure",
		0x0a: "configure", 0x0b: "started", 0x0c: "arrival", 0x0d: "reasons", 0x0e: "returned",
		0x10: "snapshot", 0x11: "window", 0x12: "states", 0x13: "entries", 0x14: "end", 0x15: "snapshot",
	}
	subQueues = []string{"", " dead letters", " transfer dead letters"}
)

// kindOf names the kind of a record and returns its fields. A kind that is not in the table
// has its number as its name.
func kindOf(payload []byte, names map[byte]string) (kind string, f fields) {
	if len(payload) == 0 {
		return "empty", f
	}
	f.rest = payload[1:]
	if kind, ok := names[payload[0]]; ok {
		return kind, f
	}
	return fmt.Sprintf("unknown %#02x", payload[0]), f
}

// describe names a record and says what it is about.
func describe(payload []byte) (kind, about string) {
	kind, f := kindOf(payload, shardRecords)
	switch kind {
	case "body":
		return kind, fmt.Sprintf("%d bytes", len(f.rest))
	case "queue":
		return f.queue()
	case "create":
		id := f.number()
		f.skip(1) // flags
		return kind, fmt.Sprintf("entity %d %q", id, f.text())
	case "update", "drop", "measurements":
		return kind, fmt.Sprintf("entity %d", f.number())
	case "published":
		return kind, fmt.Sprintf("entity %d: %d messages", f.number(), f.number())
	case "snapshot entity":
		number, id := f.number(), f.number()
		f.number() // published
		f.skip(1)  // flags
		return kind, fmt.Sprintf("snapshot %d: entity %d %q", number, id, f.text())
	case "snapshot queue":
		number := f.number()
		inner, about := f.queue()
		return kind, fmt.Sprintf("snapshot %d: %s %s", number, inner, about)
	case "snapshot begin", "snapshot end":
		return kind, fmt.Sprintf("snapshot %d", f.number())
	}
	return kind, ""
}

// fields reads the fields of a record. What is cut short reads as zero: a dump
// shows what it can.
type fields struct{ rest []byte }

func (f *fields) number() uint64 {
	v, n := binary.Uvarint(f.rest)
	if n <= 0 {
		f.rest = nil
		return 0
	}
	f.rest = f.rest[n:]
	return v
}

func (f *fields) skip(n int) { f.rest = f.rest[min(n, len(f.rest)):] }

func (f *fields) text() string {
	n := min(f.number(), uint64(len(f.rest)))
	s := string(f.rest[:n])
	f.rest = f.rest[n:]
	return s
}

// queue names a queue record behind its queue id.
func (f *fields) queue() (kind, about string) {
	id := f.number()
	of := fmt.Sprintf("entity %d", id/4)
	if sub := id % 4; sub < uint64(len(subQueues)) {
		of += subQueues[sub]
	}
	if len(f.rest) == 0 {
		return "queue", of
	}
	kind, ok := queueRecords[f.rest[0]]
	if !ok {
		return fmt.Sprintf("queue %#02x", f.rest[0]), of
	}
	f.skip(1)
	switch kind {
	case "enqueue":
		f.skip(8) // time
		first, count := f.number(), f.number()
		return kind, fmt.Sprintf("%s: %d from message %d on", of, count, first)
	case "removed":
		var seqs []uint64
		for len(f.rest) > 0 && len(seqs) < 10 {
			seqs = append(seqs, f.number())
		}
		return kind, fmt.Sprintf("%s: %s%s", of, messages(seqs), more(f.rest))
	case "failed":
		return kind, fmt.Sprintf("%s: message %d, %d times", of, f.number(), f.number())
	case "deferred", "rewrite", "reclassify", "arrival":
		return kind, fmt.Sprintf("%s: message %d", of, f.number())
	case "state":
		return kind, fmt.Sprintf("%s: session %q", of, f.text())
	}
	return kind, of
}

func messages(seqs []uint64) string {
	numbers := make([]string, len(seqs))
	for i, n := range seqs {
		numbers[i] = strconv.FormatUint(n, 10)
	}
	return "message " + strings.Join(numbers, ", ")
}

func more(rest []byte) string {
	if len(rest) > 0 {
		return " and more"
	}
	return ""
}
