// SPDX-License-Identifier: Apache-2.0

// Package oldstore opens a store that an earlier program wrote and compares its
// contents with the report of that program. It has tests only.
//
// testdata/store.tar.gz is the disk as a power cut left it in the middle of a
// snapshot; testdata/state.txt is every entity and message in it, and the order in
// which they are delivered. A change that makes the test fail has changed what bytes
// on a disk mean. Records may be added, never read in another way.
//
// The test runs in a bubble of testing/synctest, whose clock always begins at the
// same moment. So nothing in the store expires.
//
// # Another store
//
// A record that is new is in no old store. To keep one that has it, copy the test
// data under another name and run
//
//	go test ./test/oldstore -update
//
// which writes a store with the program as it is. The old store stays: programs in
// use have written it.
package oldstore
