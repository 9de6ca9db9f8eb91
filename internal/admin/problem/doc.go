// SPDX-License-Identifier: Apache-2.0

// Package problem turns Go errors into HTTP answers. It is the only package
// where an error becomes a status; the interfaces differ in how they encode a
// Problem.
//
// # Promise
//
// An unexpected error is a 500 without its text, which may contain file names.
//
// # Concurrency
//
// Everything here is a pure function.
package problem
