// SPDX-License-Identifier: Apache-2.0

// Package cli has what the commands of triagemq share; the commands themselves are in
// packages below it:
//
//	entities   queues, topics, subscriptions, rules, policies, apply, export
//	pools      worker pools: list, pause, resume, resize
//	work       runs a program for each message
//	messages   send, receive, peek, explain, dead letters
//	host       what runs on the broker's machine: serve, key, config, journal, bench
//
// A command is a function from [Streams] to a cobra.Command, so that a test can compare
// what it prints. Commands that talk to a running broker begin with [ClientCommand].
// Its [Target] dials AMQP, for messages, and the JSON API, for everything else, on the
// same host and port.
//
// # Files
//
//	streams.go     streams, exit codes, mistakes on the command line
//	target.go      which broker, and advice for errors that users can act on
//	api.go         requests of the JSON API
//	source.go      the flags that name a queue to read
//	properties.go  values of properties on the command line
//	configfile.go  reads and checks a configuration file
//	output.go      tables, JSON and progress
//
// # Not here
//
// The table of commands and the exit of the process are in cmd/triagemq.
package cli
