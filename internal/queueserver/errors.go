// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/queue"
)

// errorCodes are the errors that operations answer with, each with a code by which
// another process can tell them apart. An error that wraps one has its code. Those
// that wrap others come first.
var errorCodes = []struct {
	code string
	err  error
}{
	{"no-property-space", ErrNoPropertySpace}, // wraps ErrDiskFull
	{"no-entity", ErrNoEntity},
	{"busy", ErrBusy},
	{"disk-full", ErrDiskFull},
	{"too-large", ErrTooLarge},
	{"stopped", ErrStopped},
	{"unreadable", ErrUnreadable},
	{"gave-up", ErrAcceptCanceled},
	{"definition", errDefinition},
	{"in-use", ErrInUse},
	{"superseded", ErrSuperseded},
	{"journal-full", journal.ErrFull},
	{"journal-busy", journal.ErrBusy},
	{"journal-freed", journal.ErrFreed},
	{"journal-failed", journal.ErrFailed},
	{"journal-fenced", journal.ErrFenced},
	{"journal-closed", journal.ErrClosed},
	{"journal-corrupt", journal.ErrCorrupt},
	{"namespace-full", ErrMemory}, // wraps queue.ErrFull
	{"queue-full", queue.ErrFull},
	{"send-paused", queue.ErrSendPaused},
	{"session-required", queue.ErrSessionRequired},
	{"receive-paused", queue.ErrReceivePaused},
	{"not-found", queue.ErrNotFound},
	{"locked", queue.ErrLocked},
	{"lock-lost", queue.ErrLockLost},
	{"not-allowed", queue.ErrNotAllowed},
	{"session-locked", queue.ErrSessionLocked},
	{"session-lock-lost", queue.ErrSessionLockLost},
}

// codeOf returns the code of an error; empty if it has none.
func codeOf(err error) string {
	if _, ok := errors.AsType[*ThrottledError](err); ok {
		return "throttled"
	}
	for _, c := range errorCodes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return ""
}

// ThrottledError rejects a message of a class for a time. It unwraps to ErrBusy.
type ThrottledError struct {
	Class      string // empty for messages in none
	Reason     string
	RetryAfter float64 // seconds
}

func (e *ThrottledError) Error() string {
	who := "messages in no class are"
	if e.Class != "" {
		who = fmt.Sprintf("class %q is", e.Class)
	}
	return fmt.Sprintf("broker: %s throttled: %s; retry after %.1fs", who, e.Reason, e.RetryAfter)
}

func (e *ThrottledError) Unwrap() error { return ErrBusy }
