// SPDX-License-Identifier: Apache-2.0

// Command triagemq is the broker and its tools in one binary.
//
//	triagemq serve    run a broker
//	triagemq help     list all commands
//
// Commands that talk to a running broker send and receive over AMQP, with package
// client, and do everything else over the JSON API on the same host and port.
//
// The commands are in packages below internal/cli, a file for each. Here are the table
// of commands, the exit code, and tests that run whole commands.
package main
