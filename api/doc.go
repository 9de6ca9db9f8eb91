// SPDX-License-Identifier: Apache-2.0

// Package api holds the exported surface of every public package as text, one
// line for each name: client.txt for package client, and so on.
//
// # Promise
//
// A change of what users can see changes a file here, so that it shows in the
// diff of the change that makes it. The test compares; `make api` rewrites.
//
// # Not here
//
// Code. The package exists for its test.
package api
