// SPDX-License-Identifier: Apache-2.0

package program

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"syscall"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker"
)

// Exit codes with a meaning, named as in sysexits.h.
const (
	exitData      = 65
	exitTemporary = 75
)

// DeadLetterReason is the reason of messages that a program refused with exit code 65.
const DeadLetterReason = "ProgramRejected"

// The defaults.
const (
	defaultKillAfter = 4 * time.Second
	defaultMaxOutput = 64 << 10
)

// maxKillAtStop bounds KillAfter when the pool stops, because a pool waits no longer than
// five seconds for handlers whose context has ended.
const maxKillAtStop = 4 * time.Second

// Handler runs a program for each message. Only Command is required.
type Handler struct {
	// Command is the program and its arguments. A name without a slash is looked up in PATH.
	Command []string
	// Dir is the working directory; default that of this process.
	Dir string
	// Env has variables, as NAME=value, beside those of this process.
	Env []string
	// KillAfter is how long the program may go on after SIGTERM; default 4 s. When the pool
	// stops and its grace is over, it is at most 4 s.
	KillAfter time.Duration
	// MaxOutput is how many bytes of each output stream are kept for one message; default
	// 64 KiB. The log leaves out what is beyond. A reply that is longer makes the task fail.
	MaxOutput int
	// Reply, such as [client.Client.Reply], sends the standard output as the reply to
	// messages that ask for one, after exit code 0. Default: it is logged.
	Reply func(ctx context.Context, to *client.Received, m *client.Message) error
	// Log gets the lines of output; default [slog.Default].
	Log *slog.Logger
}

var _ worker.Handler = Handler{}

// Check returns why the program cannot be started: it or its interpreter is not there, is
// no program, or may not be executed, or Dir is no directory. A pool calls it before it
// takes its first message.
func (h Handler) Check() error {
	if err := h.checkSettings(); err != nil {
		return err
	}
	cmd := exec.Command(h.Command[0])
	if cmd.Err != nil {
		return fmt.Errorf("program: %w", cmd.Err)
	}
	if err := checkStart(cmd.Path, h.Dir); err != nil {
		return fmt.Errorf("program: %w", err)
	}
	return nil
}

func (h Handler) checkSettings() error {
	if !supported {
		return errUnsupported
	}
	if len(h.Command) == 0 || h.Command[0] == "" {
		return errors.New("program: no command")
	}
	if h.KillAfter < 0 || h.MaxOutput < 0 {
		return errors.New("program: KillAfter and MaxOutput must not be negative")
	}
	return nil
}

// Handle runs the program on one message.
func (h Handler) Handle(ctx context.Context, t *worker.Task) error {
	return h.handle(ctx, t, t.OnSuspend)
}

func (h Handler) handle(ctx context.Context, t *worker.Task, onSuspend func(stop, cont func() error)) error {
	if err := h.checkSettings(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	log := cmp.Or(h.Log, slog.Default()).With("pool", t.Pool, "message", t.ID)
	limit := cmp.Or(h.MaxOutput, defaultMaxOutput)
	var reply *collector
	stdout := outputWriter(&lines{log: log, stream: "stdout", left: limit})
	if h.Reply != nil && t.ReplyTo != "" {
		reply = &collector{limit: limit}
		stdout = reply
	}
	stderr := &lines{log: log, stream: "stderr", left: limit}

	p := process{
		command: h.Command,
		dir:     h.Dir,
		env:     environment(h.Env, t),
		stdin:   body(&t.Message),
		stdout:  stdout,
		stderr:  stderr,
	}
	err := p.run(ctx, h.killAfter, onSuspend)
	stdout.flush()
	stderr.flush()
	switch {
	case errors.Is(err, errEnded):
		return fmt.Errorf("program was ended: %w", context.Cause(ctx))
	case errors.Is(err, errNotStarted):
		return notStarted(err)
	case err != nil:
		return judge(err, stderr.last)
	case reply != nil:
		return h.reply(ctx, t, reply, log)
	}
	return nil
}

// killAfter returns how long a program may go on after SIGTERM, by the cause of that.
func (h Handler) killAfter(cause error) time.Duration {
	wait := cmp.Or(h.KillAfter, defaultKillAfter)
	if errors.Is(cause, worker.ErrStopping) {
		wait = min(wait, maxKillAtStop)
	}
	return wait
}

// notStarted turns a failed start into what becomes of the message. Arguments and
// environment that are too long can be due to the message; all else is not.
func notStarted(err error) error {
	if errors.Is(err, syscall.E2BIG) {
		return fmt.Errorf("program: %w", err)
	}
	return fmt.Errorf("program: %w: %w", worker.ErrUnavailable, err)
}

// judge turns the end of a program into what becomes of the message.
func judge(err error, lastLine string) error {
	detail := ""
	if lastLine != "" {
		detail = ": " + lastLine
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return fmt.Errorf("program: %w", err)
	}
	switch exit.ExitCode() {
	case exitData:
		return worker.DeadLetter(DeadLetterReason, fmt.Errorf("program refused the message%s", detail))
	case exitTemporary:
		return fmt.Errorf("program asked for a retry%s", detail)
	default:
		return fmt.Errorf("program failed with %w%s", exit, detail)
	}
}

// reply sends the output as the answer. If nobody waits for it any longer the work is
// done all the same.
func (h Handler) reply(ctx context.Context, t *worker.Task, out *collector, log *slog.Logger) error {
	if out.beyond > 0 {
		return fmt.Errorf("program: the reply is %d bytes longer than MaxOutput", out.beyond)
	}
	err := h.Reply(ctx, t.Received, &client.Message{Body: out.data, Priority: t.Priority})
	if errors.Is(err, client.ErrNotFound) {
		log.DebugContext(ctx, "reply dropped: nobody waits for it", "reply-to", t.ReplyTo)
		return nil
	}
	if err != nil {
		return fmt.Errorf("program: send the reply: %w", err)
	}
	return nil
}

// body returns what the program reads. A payload that is a value is JSON, a text is
// itself.
func body(m *client.Message) []byte {
	if m.Body != nil || m.Value == nil {
		return m.Body
	}
	if text, ok := m.Value.(string); ok {
		return []byte(text)
	}
	if data, err := json.Marshal(m.Value); err == nil {
		return data
	}
	return fmt.Append(nil, m.Value)
}
