// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"time"

	"github.com/triagemq/triagemq/internal/backoff"
)

// CheckpointPolicy says when the position in a partition is saved. The zero value is
// [EveryBatch]. Each but [ByHand] saves it also when the partition is handed over.
type CheckpointPolicy struct {
	kind  policyKind
	count int
	every time.Duration
}

type policyKind uint8

const (
	everySecond policyKind = iota // EveryBatch
	everyCount
	everyTime
	byHand
)

// EveryBatch saves in the background what the handler has done, at most once a second.
func EveryBatch() CheckpointPolicy { return CheckpointPolicy{} }

// EveryEvent saves after each event, before the next is handled. Batch is 1 then.
func EveryEvent() CheckpointPolicy { return CheckpointPolicy{kind: everyCount, count: 1} }

// EveryN saves after at least n events, before the next ones are handled.
func EveryN(n int) CheckpointPolicy { return CheckpointPolicy{kind: everyCount, count: n} }

// Every saves in the background what the handler has done, at most once in d.
func Every(d time.Duration) CheckpointPolicy { return CheckpointPolicy{kind: everyTime, every: d} }

// ByHand leaves it to calls of [Partition.Checkpoint].
func ByHand() CheckpointPolicy { return CheckpointPolicy{kind: byHand} }

// Backoff waits from first to most, twice as long each time, with jitter of a quarter. It
// is a value for [Processor].Retry.
func Backoff(first, most time.Duration) func(failures int) time.Duration {
	return backoff.Exponential(first, most)
}
