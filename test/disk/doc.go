// SPDX-License-Identifier: Apache-2.0

// Package disk runs the real binary on small file systems until they are full, and
// looks whether it goes on serving. It has tests only.
//
// # How
//
// The test runs its own binary again in a mount namespace of its own, where it mounts
// file systems of 60 to 500 MB: ext4 in a loop device if it is root, else tmpfs in a
// user namespace. The mounts end with the process, however it ends. Senders fill a
// disk until they are refused, consumers settle, the test itself takes what space is
// left, the broker is killed and started again. A ledger knows of each message what
// the broker has said about it, and with that every listing is compared: nothing that
// was acknowledged is missing, nothing that was settled or refused is there.
//
// Where the kernel allows neither, as in a container without the right to mount, the
// tests skip themselves.
//
// TRIAGEMQ_BINARY names the binary; without it the tests build one.
//
// TRIAGEMQ_DISK_MESSAGES=5000000 has the test of a long backlog send that many
// messages, instead of as many as fit on 60 MB. Its disk needs 500 bytes for each
// in the directory for temporary files.
//
// # Not here
//
// Disks that fill up at every single write, and power cuts: internal/sim and the
// tests of the journal, on disks in memory.
package disk
