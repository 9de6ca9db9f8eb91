// SPDX-License-Identifier: Apache-2.0

// Package config turns a file, the environment and flags into one checked value.
//
// The file is YAML, usually triagemq.yaml; see [Example]. The Config.json files of
// the Service Bus and Event Hubs emulators are read too.
//
// # Promise
//
// Every fault of a file is reported at once, with line, column and what was
// expected. Unknown keys are faults. A value that Load or Parse returned is
// complete: nothing in it has to be checked again, except what other packages
// parse (SQL, policies). They get the position of a value in the file from
// [Config.Fault].
//
// A zero setting means the default of the package that uses it; this package
// has defaults only for settings that no other package decides. Entities are
// kept as they were written, without their defaults, so that absent properties
// can be distinguished from set ones.
//
// # Format
//
// Values that aliases and merge keys repeat count as often as they are used, and
// a file may have a limited number of values: a small one cannot become large.
//
// # Concurrency
//
// A Config is a plain value. Nothing here starts a goroutine.
//
// # Not here
//
// The broker knows whether an entity can be created or changed. The command
// line parses flags and passes them as one more Config to [Config.Merge].
package config
