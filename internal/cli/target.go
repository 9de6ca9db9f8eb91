// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/client"
)

// The broker that a command talks to when it is told of none: one that
// `triagemq serve --dev` started on this machine.
const (
	ConnectionVariable = "TRIAGEMQ_CONNECTION_STRING"
	devConnection      = "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;" +
		"SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
)

// Target is the broker that a command talks to, and how it answers.
type Target struct {
	Streams
	Connection string
	JSON       bool
}

// ClientCommand makes a command that talks to a broker. Its sub-commands, if any,
// do so too.
func ClientCommand(s Streams, cmd *cobra.Command) (*cobra.Command, *Target) {
	t := &Target{Streams: s}
	fs := cmd.PersistentFlags()
	fs.StringVar(&t.Connection, "connection-string", "",
		"connection `string` or URL of the broker (default $"+ConnectionVariable+", else a development broker on localhost:5672)")
	fs.BoolVar(&t.JSON, "json", false, "answer in JSON")
	return cmd, t
}

// Address is where the broker is, and with which key to go there.
func (t *Target) Address() string {
	return cmp.Or(t.Connection, os.Getenv(ConnectionVariable), devConnection)
}

// RetryFor is how long a command retries after it has lost the broker. A user at a
// terminal wants to know sooner than a service.
const RetryFor = 10 * time.Second

// Dial connects with AMQP. The function it returns says goodbye.
func (t *Target) Dial(ctx context.Context) (*client.Client, func(), error) {
	c, err := client.Dial(ctx, t.Address(), &client.Options{Name: "triagemq", RetryTimeout: RetryFor})
	if err != nil {
		return nil, nil, Advise(err)
	}
	return c, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = c.Shutdown(ctx) // everything that mattered was answered before
	}, nil
}

// advice is what to do about errors that users can do something about.
var advice = []struct {
	err  error
	text string
}{
	{client.ErrNotFound, "`triagemq queue list` and `triagemq topic list` show what there is; `triagemq queue create NAME` makes a queue"},
	{client.ErrUnauthorized, "check the key in --connection-string or $" + ConnectionVariable + "; on its machine, `triagemq key show` shows it"},
	{client.ErrAddress, "a connection string is Endpoint=sb://HOST;SharedAccessKeyName=NAME;SharedAccessKey=KEY, a URL amqp://HOST:PORT"},
	{client.ErrDisabled, "its status or a pause forbids it: `triagemq queue show NAME` tells, `triagemq queue resume NAME` ends a pause"},
	{client.ErrQuota, "receive or purge messages, raise maxSizeInMegabytes or maxMessageCount with `triagemq queue update` if one of them is the limit, give it more memory (limits.storedMemory) if that is, or free space on the broker's disk"},
	{client.ErrTooLarge, "raise maxMessageSizeInKilobytes with `triagemq queue update`"},
	{client.ErrSessionLocked, "wait for the other receiver, or take whatever session is free with --next-session"},
	{syscall.ECONNREFUSED, "no broker is listening there: start one with `triagemq serve --dev`, or name another with --connection-string"},
	{context.DeadlineExceeded, "the broker did not answer in time: is it the right address?"},
}

// Advise adds what to do about it to an error, if that is known.
func Advise(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = fmt.Errorf("the broker cannot be reached: %w", e.Err) // without the URL, which says little
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return WithAdvice(err, "to trust the broker's CA, set SSL_CERT_FILE to its file; of a development broker that is tls/ca.pem in its data directory")
	}
	for _, a := range advice {
		if errors.Is(err, a.err) {
			return WithAdvice(err, a.text)
		}
	}
	return WithAdvice(err, "")
}

// advised is an error with what to do about it, if that is known.
type advised struct {
	error
	text string
}

// WithAdvice adds to an error what to do about it.
func WithAdvice(err error, text string) error { return &advised{err, text} }

// Error is the error without the names of packages, and the advice below it.
func (e *advised) Error() string {
	text := strings.NewReplacer("client: ", "", "server: ", "", "load: ", "").Replace(e.error.Error())
	if e.text == "" {
		return text
	}
	return text + "\n  " + e.text
}

func (e *advised) Unwrap() error { return e.error }

// Exactly is cobra.ExactArgs that says which arguments are wanted, as a mistake on
// the command line.
func Exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		wanted := "no arguments"
		if len(names) > 0 {
			wanted = Count(len(names), "argument") + " (" + strings.Join(names, " ") + ")"
		}
		return Usage(fmt.Errorf("%s takes %s; see %s --help", cmd.CommandPath(), wanted, cmd.CommandPath()))
	}
}

// Exclusive makes it a mistake on the command line to give more than one of the
// flags.
func Exclusive(cmd *cobra.Command, flags ...string) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var given []string
		for _, name := range flags {
			if cmd.Flags().Changed(name) {
				given = append(given, "--"+name)
			}
		}
		if len(given) > 1 {
			return Usage(fmt.Errorf("%s do not go together", strings.Join(given, " and ")))
		}
		return run(cmd, args)
	}
}

// Group is a command that only holds others.
func Group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		hint := "see " + cmd.CommandPath() + " --help"
		if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
			hint = "did you mean " + strings.Join(similar, " or ") + "?"
		}
		return Usage(fmt.Errorf("unknown command %q for %s; %s", args[0], cmd.CommandPath(), hint))
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(subs...)
	return cmd
}
