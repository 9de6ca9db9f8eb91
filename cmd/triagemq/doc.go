// SPDX-License-Identifier: Apache-2.0

// Command triagemq is the broker and its tools in one binary.
//
//	triagemq serve    run a broker
//	triagemq help     list all commands
//
// Commands that talk to a running broker send and receive over AMQP, with package
// client, and do everything else over the JSON API on the same host and port.
//
// Each command is a file and takes its streams, so that a test can compare what
// it prints. Commands stay thin: what they do is done by packages.
package main
