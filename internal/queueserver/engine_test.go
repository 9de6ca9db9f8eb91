// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"time"

	"github.com/triagemq/triagemq/internal/engine"
)

// manual returns the engine for a test that looks inside.
func (s *Shard) manual() engine.Manual { return s.Engine.Manual() }

// view returns the inside of the engine.
func (s *Shard) view() engine.View { return s.manual().View() }

// Limits of the engine that tests go to.
const (
	aheadBytes     = 256 << 10
	stepBytes      = 128 << 10
	maxFetches     = 4
	retryFull      = 200 * time.Millisecond
	quietAfter     = time.Second
	delayFor       = 10 * time.Millisecond
	maxCommitDelay = 5 * time.Millisecond
	kindBody       = 1
)
