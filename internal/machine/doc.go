// SPDX-License-Identifier: Apache-2.0

// Package machine is the contract between a deterministic state machine and the
// engine that makes it durable.
//
// A machine is state in memory that changes by commands. Each change writes records;
// the same records, replayed in order, make the same state again. A machine has no
// clock, no goroutine, no file and no randomness: it is given the time and the
// positions of bodies, and appends what it did to an Effects.
//
// Commands are not part of the interface: each kind of machine has its own, called
// with their own types. The engine needs only what recovery, snapshots and timers
// need.
//
//	                command(now, …, out)
//	server ──────────────────────────────────► machine
//	                                              │ records, bodies added and freed
//	                                              ▼
//	engine ◄─────────────────────────────────── Effects
//	   │       Replay, Snapshot, NextDeadline, Refs ──► machine
//
// # Invariants that a machine keeps
//
//  1. Replaying its records in order gives the state that wrote them.
//  2. A snapshot may be written in steps with commands in between. Its records and
//     those of the commands, replayed from the first step on, give the state at the end.
//     A snapshot within a history that is known adds nothing but new places of bodies.
//  3. A step of a snapshot stays within its budget, but for one item.
//  4. The bodies it refers to are those it has added and not freed.
//
// Package machinetest checks them for any machine.
//
// # Files
//
//	machine.go   Machine, Snapshot, Budget, Ref
//	effects.go   what commands write
//	reader.go    reading records
package machine
