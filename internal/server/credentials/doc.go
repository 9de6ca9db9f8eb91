// SPDX-License-Identifier: Apache-2.0

// Package credentials keeps what a broker proves itself and checks others with in its
// data directory: the access rules of the namespace with their keys, and the
// certificate for development.
//
// A file is replaced as a whole, so a crash leaves the old one or the new one. The
// certificate is three files; a set that does not match is made anew. The keys may be
// changed by a command beside a running broker: one at a time, under a lock, and the
// file keeps its owner and mode.
//
//	rules.go        read and write the rules
//	keys.go         change a key of a broker that may be running
//	certificate.go  the certificate for development and its CA
//	owner_*.go      the owner of a file that is replaced
package credentials
