// SPDX-License-Identifier: Apache-2.0

// Command triagemq is the broker and its tools in one binary.
//
//	triagemq serve    run a broker
//	triagemq help     list all commands
//
// Each command is a file and takes its streams, so that a test can compare what
// it prints. Commands stay thin: what they do is done by packages.
package main
