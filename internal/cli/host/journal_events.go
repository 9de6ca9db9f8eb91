// SPDX-License-Identifier: Apache-2.0

package host

import "fmt"

// The names of records in the log of an event hub, as docs/format/hub-records.md has
// them.
var (
	hubRecords = map[byte]string{
		1: "body", 2: "partition", 7: "snapshot begin", 8: "snapshot part", 9: "snapshot unit", 10: "snapshot end", 11: "new partition",
		12: "new coordinator",
	}
	partitionRecords = map[byte]string{
		1: "created", 2: "append", 3: "append", 4: "seal", 5: "trim", 6: "producer", 7: "blocks", 8: "state",
	}
	groupRecords = map[byte]string{
		1: "groups created", 2: "member", 3: "member gone", 4: "owner", 5: "checkpoint", 6: "hold", 7: "claim", 8: "group forgotten",
		9: "groups begin", 10: "groups end",
	}
)

// firstPartition is the unit of partition 0, and coordinator that of the consumer groups. In
// a snapshot the part of the groups has a number behind those of all partitions.
const (
	firstPartition  = 16
	coordinator     = 0
	partCoordinator = 1 << 14
)

// describeEvents names a record in the log of an event hub and says what it is about.
func describeEvents(payload []byte) (kind, about string) {
	kind, f := kindOf(payload, hubRecords)
	switch kind {
	case "body":
		return kind, fmt.Sprintf("%d bytes", len(f.rest))
	case "partition":
		return f.partition()
	case "new partition":
		return kind, fmt.Sprintf("partition %d", f.number())
	case "snapshot part":
		number, part := f.number(), f.number()
		if part == partCoordinator {
			return kind, fmt.Sprintf("snapshot %d: coordinator", number)
		}
		return kind, fmt.Sprintf("snapshot %d: partition %d", number, part)
	case "snapshot unit":
		number := f.number()
		inner, about := f.partition()
		return kind, fmt.Sprintf("snapshot %d: %s %s", number, inner, about)
	case "snapshot begin", "snapshot end":
		return kind, fmt.Sprintf("snapshot %d", f.number())
	}
	return kind, ""
}

// partition names a record of a partition behind its unit.
func (f *fields) partition() (kind, about string) {
	unit := f.number()
	if unit == coordinator {
		return f.groups()
	}
	of := fmt.Sprintf("partition %d", int64(unit)-firstPartition)
	if len(f.rest) == 0 {
		return "partition", of
	}
	kind, ok := partitionRecords[f.rest[0]]
	if !ok {
		return fmt.Sprintf("partition %#02x", f.rest[0]), of
	}
	f.skip(1)
	switch kind {
	case "append":
		first, count := f.number(), f.number()
		return kind, fmt.Sprintf("%s: %d from event %d on", of, count, first)
	case "seal":
		first, count := f.number(), f.number()
		return kind, fmt.Sprintf("%s: %d from event %d on", of, count, first)
	case "trim":
		return kind, fmt.Sprintf("%s: all before event %d", of, f.number())
	}
	return kind, of
}

// groups names a record of the consumer groups.
func (f *fields) groups() (kind, about string) {
	if len(f.rest) == 0 {
		return "groups", ""
	}
	kind, ok := groupRecords[f.rest[0]]
	if !ok {
		return fmt.Sprintf("groups %#02x", f.rest[0]), ""
	}
	f.skip(1)
	switch kind {
	case "groups created", "groups begin", "groups end":
		return kind, ""
	}
	about = "group " + f.text()
	switch kind {
	case "member", "member gone":
		about += ": " + f.text()
	case "owner", "checkpoint", "hold", "claim":
		about += fmt.Sprintf(": partition %d", f.number())
	}
	return kind, about
}
