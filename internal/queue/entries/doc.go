// SPDX-License-Identifier: Apache-2.0

// Package entries stores the messages of one queue in memory, without their bodies, and
// sorted lists of them.
//
// A Store has an Entry of 56 bytes for each message, in slabs, and finds it by its
// sequence number, by its address, or in sequence order. Groups interns the names of
// sessions and fair keys, which an Entry refers to by number. A SeqList holds the
// sequence numbers of messages in an order; a SortedList orders messages by order time,
// and a long one has slabs of its own.
//
// # How the files fit together
//
//	entry.go        Entry: fields, flags, state, expiry; times in nanoseconds
//	slab.go         the allocator: slabs, addresses, runs
//	store.go        sequence number -> entry, through pages; pack.go: sparse pages
//	expiry.go       which page has messages that expire, and when
//	arrivaltime.go  arrival times that differ from order times
//	groups.go       interned names
//	seqlist.go      a list of sequence numbers
//	sortedlist.go   messages by order time: a SeqList and a run
//	table.go        a map that gives its memory back
//	memory.go       what all of it takes
//	check.go        invariants, for tests
//
// # Invariants
//
// By the numbers of package queue: 8 (slabs and addresses), 9 (expiry), and the parts
// of 5 that concern lists.
//
// # Concurrency
//
// None: a Store belongs to one goroutine, that of its queue. A pointer to an Entry is
// valid until the next Put, Move or Delete.
//
// # Not here
//
// Which message is next: queue/order. What a state means: queue.
package entries
