// SPDX-License-Identifier: Apache-2.0

// Package hostile plays peers that mean harm against the real binary, which may use
// 512 MiB of memory. It has tests only.
//
// # How
//
// TestHostile runs one broker with keys of every kind and plays each attack as a
// subtest. The number before a name only keeps variants together. While a subtest
// runs, a bystander sends and receives small messages on a separate queue. A
// subtest fails if its own check does, and always if
//
//   - the process ends,
//   - its resident memory was above 512 MiB at any moment,
//   - an operation of the bystander fails or takes more than ten seconds,
//   - goroutines and descriptors do not come back to what they were.
//
// The waiting time of the bystander is written to the log of the test, next to
// its waiting time without an attack; nothing is asserted about that ratio.
//
// A broker that crashes, or that fails a scene, is replaced by a new one on an
// empty store, so that one fault does not hide the others. At the end the last
// one is restarted on its store, and its memory must be near its initial value.
//
// # Limits
//
// The process runs with GOMEMLIMIT=400MiB, and with a data segment of 1 GiB as a hard
// limit (ulimit -d), which protects the machine. The 512 MiB are the high-water mark of
// its resident memory, which Linux keeps: nothing is missed between two samples.
//
// # Long
//
// HOSTILE_LONG=1 runs each attack at the size at which it was first seen, and allows the
// process a minute after each to have as many goroutines and descriptors as before. Without it
// the suite takes two minutes, and up to two more until the collector has run.
//
// It runs on Linux, which keeps these numbers and has many loopback addresses.
// TRIAGEMQ_BINARY names the binary; without it the tests build one.
package hostile
