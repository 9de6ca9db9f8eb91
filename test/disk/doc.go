// SPDX-License-Identifier: Apache-2.0

// Package disk runs the real binary on small file systems until they are full,
// and checks that it continues to serve. It has tests only.
//
// # How
//
// The test runs its own binary again in a new mount namespace, where it mounts
// file systems of 60 to 500 MB: ext4 in a loop device if it is root, else tmpfs
// in a user namespace. The mounts end with the process, however it ends.
// Senders fill a disk until they are rejected, consumers settle, the test
// itself uses the remaining space, the broker is killed and started again. A
// ledger records the broker's answers for each message, and every listing is
// compared with it: no acknowledged message is missing, and no settled or
// rejected message exists.
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
