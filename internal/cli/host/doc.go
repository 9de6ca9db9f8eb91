// SPDX-License-Identifier: Apache-2.0

// Package host has the commands for the machine that a broker runs on: serve, the keys
// in its data directory, the check of a configuration file, bench, and the offline
// commands about a journal. running.go finds the broker that uses a data directory, so
// that it can be told to read its files again.
package host
