// SPDX-License-Identifier: Apache-2.0

// Package engine is the single writer: it makes state machines durable.
//
// An engine owns one history in the journal and drives the machines of a host. It takes
// commands from a mailbox, applies them in memory, appends what they wrote as one group,
// and releases replies and deliveries when the journal says that the group is durable.
// It takes snapshots, moves bodies, truncates and recovers the history, and keeps the
// one timer. It knows machines by package machine alone: not a queue, not a message.
//
//	            Command, Steps
//	callers ─────────────────────────► mailbox ─► Engine ◄─► Host (queues, streams …)
//	                                                │  ▲        │ commands of its own
//	                              Append, Truncate, │  │        ▼
//	                              Claim, Read       ▼  │ Watch  machine.Machine
//	                                              journal
//
// # One commit over time
//
//	caller      Submit ·                                            · Reply
//	mailbox         └─► take ┐                                      ▲
//	engine's goroutine       ├ Apply, Apply, Tick, Serve ┐   observe┘
//	                         └──── records in Effects ───┴► Append
//	journal                                                 └► write, sync ─► Status
//	                    step n                              │   step n+1
//
// Everything between two appends is one group: after a crash all of it is there or
// nothing. A group without an acknowledgement may wait 5 ms to share a sync.
//
// # Nothing is observable before it is durable
//
// Replies are kept with their group. Values for the outside are kept in a Held, which
// lets them out only against a Permit, and only the engine makes permits: after it has
// seen what is durable and that the lease of its claim is not over.
//
// # The fuzzy snapshot
//
// A snapshot is written into the same history in small steps, with commands in between.
// Each piece shows a part of the state at its own place in the log:
//
//	log    B  a1  p1(a)  a2  b1  p2(b)  b2  E
//	       │      │          │   │          └ end: durable, so the history begins at B
//	       │      │          │   └ piece of b: shows b1
//	       │      │          └ before its piece has come: replay ignores it
//	       │      └ piece of a: shows a1
//	       └ begin
//
// Replay from B ignores what touches a unit, or a part of one, whose piece has not come
// yet, because that piece shows it. The same pass moves bodies out of segments that are
// mostly garbage. When the end is durable, the engine tells the journal to keep the history
// from B on, and of older segments those with live bodies.
//
// # Bodies
//
// A body is a record of its own, appended before the small record that refers to it by
// position: a body without a reference is garbage, never the other way round. The engine
// counts for each segment what is referred to. It reads none on its goroutine: see Fetch.
//
// # Full disk
//
// Bodies of senders are refused when only reserved space is left. Groups may use the
// reserve. It covers settling everything that is stored, one message at a time, and the
// snapshots that free space before that: see reserve.go for why that is enough. When only
// what settlements need is left the engine is short: what frees no space is refused or
// waits. A step may write much, so whatever frees nothing asks before it writes (HasSpace).
//
// A store that an earlier version has filled may have less. When that is used up the engine
// is stuck: the open group stays as it is, and no command is applied until there is space.
// After a few seconds the callers that wait for one are refused (Refusable).
//
// # Concurrency
//
// Run owns every field but the mailbox. Step and what it calls need no goroutine, which
// is how simulators and tests drive an engine; with Options.Go they also decide when work
// beside it is done. Submit may be called from anywhere and never blocks. Replies run on
// the engine's goroutine and must return at once.
//
// # Invariants
//
//  1. Positions in waiting ascend; nothing in it is released before its turn.
//  2. For each segment, live counts the bytes of exactly those bodies that some
//     machine refers to, or one that was dropped and is not done with.
//
// # Files
//
//	host.go, tx.go               what a host implements, and what it may do
//	engine.go                    Run, Step, and what a step does
//	mailbox.go, delay.go         commands that wait
//	group.go, record.go, held.go the open group, its way to the journal, what waits for it
//	steps.go, fetch.go           operations in steps, reads beside the engine
//	deadlines.go                 the timer
//	snapshot.go                  writing a snapshot, moving bodies, truncating
//	snapshot_policy.go           when to ask package retention whether to take one
//	reserve.go                   what must be kept free to settle everything
//	recover.go                   replay
//	stats.go, inspect.go, manual.go  for operators, simulators and tests
package engine
