// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/cli"
)

// receiveFlags are what receive can be told.
type receiveFlags struct {
	*cli.Target
	cli.Source
	count       int
	wait        time.Duration
	disposition string
	remove      bool
	reason      string
	description string
	session     string
	nextSession bool
	bodyOnly    bool
	from        []string // queues, in order of preference
	byLevel     bool
	min, max    string // priorities
}

// errNothing is the end of a command that got no message at all.
var errNothing = errors.New("no message received")

func ReceiveCommand(s cli.Streams) *cobra.Command {
	var f receiveFlags
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use:   "receive QUEUE|TOPIC",
		Short: "Receive messages, the most urgent first",
		Long: `Receive messages from a queue or subscription, the most urgent first.

A message is completed, which removes it, after it was printed. --settle chooses
another disposition: release (requeue, delivery count unchanged), abandon (requeue,
delivery count + 1), defer or dead-letter. --delete removes messages on delivery
(receive-and-delete).

The exit code is 1 if no message was received.`,
		Example: `  triagemq receive orders
  triagemq receive orders --count 0 --wait 1s --body-only > bodies.txt
  triagemq receive jobs --subscription high --settle release
  triagemq receive orders --settle dead-letter --reason "wrong address"
  triagemq receive --from urgent,orders,reports
  triagemq receive orders --min-priority high`,
	})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(f.from) == 0 {
			return cli.Exactly("QUEUE|TOPIC")(cmd, args)
		}
		return cli.Exactly()(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.run(cmd.Context(), append(args, f.from...)[0])
	}
	f.Target = t
	f.Flags(cmd)
	fs := cmd.Flags()
	fs.IntVarP(&f.count, "count", "n", 1, "how many to receive; 0 is all that come")
	fs.DurationVarP(&f.wait, "wait", "w", 5*time.Second, "how long to wait for the next one")
	fs.StringVar(&f.disposition, "settle", "complete", "`disposition` of each message after it was printed: complete, release, abandon, defer or dead-letter")
	fs.BoolVar(&f.remove, "delete", false, "remove messages on delivery (receive-and-delete)")
	fs.StringVar(&f.reason, "reason", "", "`text`: why they are dead letters")
	fs.StringVar(&f.description, "description", "", "`text`: more about why")
	fs.StringVar(&f.session, "session", "", "`id` of the session to read")
	fs.BoolVar(&f.nextSession, "next-session", false, "read the next session that is free")
	fs.StringSliceVar(&f.from, "from", nil, "receive from several queues, `a,b,c`, the first that has a message first")
	fs.BoolVar(&f.byLevel, "by-level", false, "with --from, take the most urgent message of all of them")
	fs.StringVar(&f.min, "min-priority", "", "receive nothing below this `priority`: a level, a name or a class")
	fs.StringVar(&f.max, "max-priority", "", "receive nothing above this `priority`")
	fs.BoolVar(&f.bodyOnly, "body-only", false, "print nothing but bodies, each with a line end")
	cli.Exclusive(cmd, "settle", "delete")
	cli.Exclusive(cmd, "session", "next-session", "from")
	cli.Exclusive(cmd, "subscription", "from")
	cli.Exclusive(cmd, "json", "body-only")
	return cmd
}

// dispositions settle a message, by name.
var dispositions = map[string]func(context.Context, *client.Receiver, *client.Received, *receiveFlags) error{
	"complete": func(ctx context.Context, r *client.Receiver, m *client.Received, _ *receiveFlags) error {
		return r.Complete(ctx, m)
	},
	"release": func(ctx context.Context, r *client.Receiver, m *client.Received, _ *receiveFlags) error {
		return r.Release(ctx, m, nil)
	},
	"abandon": func(ctx context.Context, r *client.Receiver, m *client.Received, _ *receiveFlags) error {
		return r.Abandon(ctx, m, nil)
	},
	"defer": func(ctx context.Context, r *client.Receiver, m *client.Received, _ *receiveFlags) error {
		return r.Defer(ctx, m, nil)
	},
	"dead-letter": func(ctx context.Context, r *client.Receiver, m *client.Received, f *receiveFlags) error {
		return r.DeadLetter(ctx, m, f.reason, f.description)
	},
}

func (f *receiveFlags) run(ctx context.Context, name string) error {
	disposition, ok := dispositions[f.disposition]
	if !ok {
		return cli.Usage(fmt.Errorf("--settle %q is none of complete, release, abandon, defer, dead-letter", f.disposition))
	}
	if f.count < 0 || f.wait < 0 {
		return cli.Usage(fmt.Errorf("--count and --wait must not be negative"))
	}
	if f.reason != "" && f.disposition != "dead-letter" {
		return cli.Usage(fmt.Errorf("--reason belongs to --settle dead-letter"))
	}
	c, done, err := f.Dial(ctx)
	if err != nil {
		return err
	}
	defer done()
	r, err := f.open(ctx, c, f.Of(name))
	if err != nil {
		return err
	}
	got := 0
	// A message that was printed and requeued must not be received again at once.
	// So dispositions that requeue are sent at the end.
	var keep []*client.Received
	for f.count == 0 || got < f.count {
		m, err := f.next(ctx, r)
		if errors.Is(err, errNothing) {
			break
		}
		if err != nil {
			return errors.Join(cli.Advise(err), f.settle(ctx, r, disposition, keep))
		}
		got++
		if err := f.print(m, got); err != nil {
			return err
		}
		switch {
		case f.remove:
		case f.disposition == "release" || f.disposition == "abandon":
			keep = append(keep, m)
		default:
			if err := disposition(ctx, r, m, f); err != nil {
				return cli.Advise(err)
			}
		}
	}
	if err := f.settle(ctx, r, disposition, keep); err != nil {
		return err
	}
	if got == 0 {
		return fmt.Errorf("%w from %s within %v", errNothing, f.Of(name), f.wait)
	}
	return nil
}

// settle sends the disposition of messages that were kept until the end.
func (f *receiveFlags) settle(ctx context.Context, r *client.Receiver, disposition func(context.Context, *client.Receiver, *client.Received, *receiveFlags) error, keep []*client.Received) error {
	var errs []error
	for _, m := range keep {
		errs = append(errs, disposition(ctx, r, m, f))
	}
	return cli.Advise(errors.Join(errs...))
}

func (f *receiveFlags) open(ctx context.Context, c *client.Client, address string) (*client.Receiver, error) {
	o := &client.ReceiverOptions{MinPriority: client.Priority(f.min), MaxPriority: client.Priority(f.max), TellLevel: true}
	if len(f.from) > 0 {
		o.Sources = f.from[1:]
	}
	if f.byLevel && len(o.Sources) > 0 {
		o.SourceSelection = client.ByLevel
	}
	if f.remove {
		o.Mode = client.ReceiveAndDelete
	}
	ctx, cancel := context.WithTimeout(ctx, f.wait+cli.RetryFor)
	defer cancel()
	var s *client.Session
	var err error
	switch {
	case f.session != "":
		s, err = c.OpenSession(ctx, address, f.session, o)
	case f.nextSession:
		wait, cancel := context.WithTimeout(ctx, f.wait)
		defer cancel()
		s, err = c.NextSession(wait, address, o)
		if wait.Err() != nil {
			return nil, fmt.Errorf("no session of %s has messages and is free", address)
		}
	default:
		r, err := c.OpenReceiver(ctx, address, o)
		return r, f.sessionAdvice(err)
	}
	if err != nil {
		return nil, cli.Advise(err)
	}
	return s.Receiver, nil
}

// sessionAdvice tells those who forgot it that an entity wants a session.
func (f *receiveFlags) sessionAdvice(err error) error {
	if errors.Is(err, client.ErrNotAllowed) {
		return cli.WithAdvice(err, "if it requires sessions, name one with --session, or take any with --next-session")
	}
	return cli.Advise(err)
}

// next waits for one message.
func (f *receiveFlags) next(ctx context.Context, r *client.Receiver) (*client.Received, error) {
	wait, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	ms, err := r.Receive(wait, 1)
	switch {
	case err == nil:
		return ms[0], nil
	case wait.Err() != nil && ctx.Err() == nil:
		return nil, errNothing
	}
	return nil, f.sessionAdvice(err)
}

func (f *receiveFlags) print(m *client.Received, n int) error {
	shown := present(m)
	switch {
	case f.JSON:
		return cli.JSONLine(f.Out, shown)
	case f.bodyOnly && m.Value == nil:
		_, err := f.Out.Write(append(m.Body, '\n'))
		return err
	case f.bodyOnly:
		_, err := fmt.Fprintln(f.Out, shown.bodyText())
		return err
	}
	if n > 1 {
		fmt.Fprintln(f.Out)
	}
	shown.print(f.Out)
	return nil
}
