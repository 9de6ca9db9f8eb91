// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/policy"
)

// sendFlags are what send can be told.
type sendFlags struct {
	*cli.Target
	bodies     []string
	files      []string
	lines      bool
	message    client.Message // what every message has in common
	priority   string
	properties []string
	schedule   string
	ttl        string
	count      int
	batch      int
	quiet      bool
	noun       string // what it sends: message, or event
}

// defaultBatch is how many messages go in one transfer when there are many.
const defaultBatch = 100

// maxLine is the longest line that can be a message: as large as one may be.
const maxLine = 100 << 20

func SendCommand(s cli.Streams) *cobra.Command {
	f := sendFlags{noun: "message"}
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use:   "send QUEUE|TOPIC",
		Short: "Send messages",
		Long: `Send messages to a queue or topic, and return when they are on the broker's disk.

A message is what --body says, what is in a file, or what comes on standard input;
with --lines each line of it is one. Of a --property, numbers and true and false are
what they look like; "quotes" make text of them.`,
		Example: `  triagemq send orders --body hello --priority high
  triagemq send orders --file invoice.json --property region=eu --property amount=120
  seq 1000 | triagemq send orders --lines
  triagemq send orders --body tick --count 100000 --batch 500
  triagemq send orders --body later --schedule 10m`,
		Args: cli.Exactly("QUEUE|TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), args[0]) },
	})
	f.Target = t
	fs := cmd.Flags()
	f.contentFlags(cmd)
	fs.StringVarP(&f.priority, "priority", "p", "", "`level` from 0 to 255, or critical, high, normal, low, background")
	fs.StringVar(&f.message.Session, "session", "", "`id` of the session")
	fs.StringVar(&f.message.To, "to", "", "`address` for the receiver to see")
	fs.StringVar(&f.message.ReplyTo, "reply-to", "", "`address` for an answer")
	fs.StringVar(&f.schedule, "schedule", "", "schedule delivery for a `time` (2026-01-31T12:00:00Z) or after a delay (10m)")
	fs.StringVar(&f.ttl, "ttl", "", "time to `live`: 30s, 5m, 14d")
	return cmd
}

// contentFlags are those that messages and events have in common.
func (f *sendFlags) contentFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringArrayVarP(&f.bodies, "body", "b", nil, "`text` of a "+f.noun+"; may be repeated")
	fs.StringArrayVarP(&f.files, "file", "f", nil, "`file` with a "+f.noun+", - is standard input; may be repeated")
	fs.BoolVar(&f.lines, "lines", false, "each line of the input is a "+f.noun)
	fs.StringArrayVar(&f.properties, "property", nil, "`name=value` for rules and receivers to see; may be repeated")
	fs.StringVar(&f.message.ID, "id", "", "message `id` (default: a random one)")
	fs.StringVar(&f.message.Subject, "subject", "", "what it is about; rules call it sys.Label")
	fs.StringVar(&f.message.CorrelationID, "correlation-id", "", "`id` of what it answers or belongs to")
	fs.StringVar(&f.message.ContentType, "content-type", "", "media `type` of the body")
	fs.IntVar(&f.count, "count", 1, "how many times to send it")
	fs.IntVar(&f.batch, "batch", 0, f.noun+"s in a transfer, which is stored as a whole (default 100 if there are several)")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing but errors")
	cli.Exclusive(cmd, "body", "file")
}

func (f *sendFlags) run(ctx context.Context, to string) error {
	at, err := f.complete(time.Now())
	if err != nil {
		return err
	}
	c, done, err := f.Dial(ctx)
	if err != nil {
		return err
	}
	defer done()
	sender, err := c.OpenSender(ctx, to, nil)
	if err != nil {
		return cli.Advise(err)
	}
	p := f.Progress(time.Now())
	if f.quiet {
		p.W = io.Discard
	}
	sent := 0
	var numbers []client.SeqNo
	for batch, err := range f.batches() {
		if err != nil {
			return errors.Join(err, f.partly(sent))
		}
		if at.IsZero() {
			err = sender.SendBatch(ctx, batch)
		} else {
			var ns []client.SeqNo
			ns, err = sender.Schedule(ctx, at, batch...)
			numbers = append(numbers, ns...)
		}
		if err != nil {
			return errors.Join(cli.Advise(err), f.partly(sent))
		}
		sent += len(batch)
		p.At(time.Now(), sent, f.total())
	}
	p.Finish()
	return f.report(to, sent, at, numbers)
}

// complete reads the flags that need reading, and returns when the messages are
// due.
func (f *sendFlags) complete(now time.Time) (at time.Time, err error) {
	if f.count < 1 || f.batch < 0 {
		return at, cli.Usage(fmt.Errorf("--count and --batch are numbers from 1"))
	}
	if _, ok := policy.ParseLevel(f.priority); !ok && f.priority != "" {
		return at, cli.Usage(fmt.Errorf("--priority: %q is neither a level from 0 to 255 nor critical, high, normal, low or background; "+
			"for a name that a policy knows say --property Priority=NAME", f.priority))
	}
	f.message.Priority = client.Priority(f.priority)
	values, err := cli.ParseProperties(f.properties)
	if err != nil {
		return at, err
	}
	f.message.Properties = cli.PlainValues(values)
	if f.ttl != "" {
		d, err := entity.ParseDuration(f.ttl)
		if err != nil {
			return at, cli.Usage(fmt.Errorf("--ttl: %w", err))
		}
		f.message.TTL = d.Std()
	}
	if f.schedule == "" {
		return at, nil
	}
	if d, err := entity.ParseDuration(f.schedule); err == nil {
		return now.Add(d.Std()), nil
	}
	if at, err = time.Parse(time.RFC3339, f.schedule); err != nil {
		return at, cli.Usage(fmt.Errorf("--schedule %q is neither a time such as 2026-01-31T12:00:00Z nor a while such as 10m", f.schedule))
	}
	return at, nil
}

// total is how many messages will be sent, zero if only the input knows.
func (f *sendFlags) total() int {
	if f.lines {
		return 0
	}
	return max(len(f.bodies), len(f.files), 1) * f.count
}

// batches yields the messages in the portions in which they are sent.
func (f *sendFlags) batches() iter.Seq2[[]*client.Message, error] {
	size := f.batch
	if size == 0 {
		size = defaultBatch
	}
	return func(yield func([]*client.Message, error) bool) {
		var batch []*client.Message
		for body, err := range f.contents() {
			if err != nil {
				yield(nil, err)
				return
			}
			for range f.count {
				m := f.message
				m.Body = body
				if batch = append(batch, &m); len(batch) < size {
					continue
				}
				if !yield(batch, nil) {
					return
				}
				batch = nil
			}
		}
		if len(batch) > 0 {
			yield(batch, nil)
		}
	}
}

// contents yields the bodies.
func (f *sendFlags) contents() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, body := range f.bodies {
			if !yield([]byte(body), nil) {
				return
			}
		}
		files := f.files
		if len(files) == 0 && len(f.bodies) == 0 {
			files = []string{"-"}
		}
		for _, name := range files {
			if !f.file(name, yield) {
				return
			}
		}
	}
}

// file yields what is in one file, and reports whether to go on.
func (f *sendFlags) file(name string, yield func([]byte, error) bool) bool {
	in := f.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			yield(nil, err)
			return false
		}
		defer file.Close() // only read: nothing to lose
		in = file
	}
	if !f.lines {
		body, err := io.ReadAll(in)
		return yield(body, err) && err == nil
	}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		if !yield([]byte(scanner.Text()), nil) { // a copy: the scanner uses its bytes again
			return false
		}
	}
	if err := scanner.Err(); err != nil {
		yield(nil, fmt.Errorf("read %s: %w", name, err))
		return false
	}
	return true
}

// partly says what was sent before something went wrong.
func (f *sendFlags) partly(sent int) error {
	if sent == 0 {
		return nil
	}
	return fmt.Errorf("%s sent before that", cli.Count(sent, f.noun))
}

func (f *sendFlags) report(to string, sent int, at time.Time, numbers []client.SeqNo) error {
	if f.JSON {
		answer := struct {
			Sent    int            `json:"sent"`
			To      string         `json:"to"`
			Due     time.Time      `json:"due,omitzero"`
			Numbers []client.SeqNo `json:"sequenceNumbers,omitempty"` // of scheduled messages
		}{sent, to, at, numbers}
		return cli.AnswerJSON(f.Out, answer)
	}
	if f.quiet {
		return nil
	}
	if at.IsZero() {
		fmt.Fprintf(f.Out, "Sent %s to %s.\n", cli.Count(sent, f.noun), to)
		return nil
	}
	fmt.Fprintf(f.Out, "Sent %s to %s, due at %s.\n", cli.Count(sent, f.noun), to, cli.TimeText(at))
	return nil
}
