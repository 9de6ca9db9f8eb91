// SPDX-License-Identifier: Apache-2.0

// Package problem turns Go errors into what an HTTP client is told. It is the
// only place where an error becomes a status; the interfaces differ in how they
// write a Problem down.
//
// # Promise
//
// An error nobody planned for is a 500 without its text, which may name files.
//
// # Concurrency
//
// Everything here is a pure function.
package problem
