// SPDX-License-Identifier: Apache-2.0

// Package crash kills a broker on a real disk, again and again, and checks that
// it lost nothing that it acknowledged. It has tests only.
//
// # How
//
// The test runs its own binary as a child: journal, two shards and a broker on
// a directory, with senders and receivers in the same process. The child writes
// a line for every acknowledgement: sent, completed. The parent kills it with
// SIGKILL at a random moment, starts it again, and lets it list every message.
// CRASH_LOOPS says how often, 50 times unless it is set.
//
// Another test does the same with an event hub: acknowledged events are there, in order,
// and what a reader got stays what it was, up to what retention drops.
//
// A third test flips single bits in the files of a store and starts a broker on
// each: it delivers what was sent, or it reports the damage.
//
// # Not here
//
// Power cuts, which lose what was written and not synced: internal/sim and the
// tests of the journal, on disks in memory.
package crash
