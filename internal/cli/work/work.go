// SPDX-License-Identifier: Apache-2.0

package work

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
)

// workFlags are what work can be told.
type workFlags struct {
	*cli.Target
	pool      config.Pool
	exec      execFlag
	preempt   config.Preempt
	scale     config.Scale
	preempts  bool
	file      string
	example   bool
	verbose   bool
	processes int
	env       []string
}

// execFlag is the flag after whose value nothing is a flag of ours any more.
type execFlag struct {
	cmd   *cobra.Command
	given bool
	queue int    // how many arguments came before it
	name  string // of --exec=NAME
}

func (e *execFlag) String() string { return "" }
func (e *execFlag) Type() string   { return "bool" } // which takes no value from the next argument

// Set notes where the command begins. The flag set then leaves what follows alone.
func (e *execFlag) Set(value string) error {
	if e.given {
		return errors.New("is given twice")
	}
	e.given, e.queue = true, e.cmd.Flags().NArg()
	if value != execAlone {
		e.name = value
	}
	e.cmd.Flags().SetInterspersed(false)
	return nil
}

// execAlone is the value of --exec without =NAME.
const execAlone = "true"

// split returns what came before the command, and the command.
func (e *execFlag) split(args []string) (queues, command []string) {
	if !e.given {
		return args, nil
	}
	queues, command = args[:e.queue], args[e.queue:]
	if e.name != "" {
		command = append([]string{e.name}, command...)
	}
	return queues, command
}

// Command is the command "work".
func Command(s cli.Streams) *cobra.Command {
	f := &workFlags{}
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use:   "work QUEUE… [flags] --exec CMD [ARG…]",
		Short: "Run a program for each message",
		Long: `Run a program for each message of a queue, the most urgent first, until interrupted.

The body is the program's standard input; what else the message says is in its
environment: TRIAGEMQ_MESSAGE_ID, TRIAGEMQ_SUBJECT, TRIAGEMQ_PRIORITY, TRIAGEMQ_LEVEL,
TRIAGEMQ_CLASS, TRIAGEMQ_DELIVERY_COUNT, TRIAGEMQ_ENQUEUED, TRIAGEMQ_SESSION,
TRIAGEMQ_CORRELATION_ID, TRIAGEMQ_CONTENT_TYPE, TRIAGEMQ_SOURCE, TRIAGEMQ_POOL, and each
application property as TRIAGEMQ_PROPERTY_<NAME>. The exit code decides:

  0      the message is complete
  65     it is a dead letter: no retry can help
  75     try again later
  other  failed; tried again later

With --preempt a message of a higher level starts at once although all slots are busy.
The program of the lowest is stopped (SIGSTOP) and goes on (SIGCONT) when a slot is
free, with its memory and open files as they were.

Several queues are one pool; the first that has a message is served first. A
subscription is TOPIC/Subscriptions/NAME. All flags come before --exec: what follows it
is the program's own. Several pools are described by a file: -f pools.yaml.`,
		Example: `  triagemq work renders --slots 4 --preempt --exec ./render.sh --quality high
  triagemq work reports --window "Mon-Fri 19:00-07:00 Europe/Berlin" --window Sat,Sun --latest-start 6h --exec python3 report.py
  triagemq work orders --processes 2 --scale-max 8 --exec ./handle-order
  triagemq work --example > pools.yaml
  triagemq work -f pools.yaml`,
		Args: cobra.ArbitraryArgs,
	})
	f.Target = t
	fs := cmd.Flags()
	f.exec.cmd = cmd
	fs.Var(&f.exec, "exec", "run `CMD [ARG…]` for each message; the last flag")
	fs.Lookup("exec").NoOptDefVal = execAlone
	fs.StringVarP(&f.file, "file", "f", "", "run the pools of a YAML `file`")
	fs.BoolVar(&f.example, "example", false, "print a file of pools that explains itself")
	fs.StringVar(&f.pool.Name, "name", "", "`name` in triagemq pool list (default the first queue)")
	fs.IntVar(&f.pool.Slots, "slots", 1, "how many programs run at a time")
	fs.IntVar(&f.pool.Buffer, "buffer", 0, "how many messages to fetch ahead of free slots")
	fs.BoolVar(&f.pool.DurableLocks, "durable-locks", false, "keep each message from others through restarts of the broker from its first moment, not its first second")
	fs.BoolVar(&f.pool.Sessions, "sessions", false, "take sessions: each is one slot's at a time, its messages in order")
	durationVar(cmd, &f.pool.SessionIdle, "session-idle", "with --sessions: `time` that a slot keeps a session without messages (default 1s)")
	fs.StringVar(&f.pool.Select, "select", "", "with several queues: `order`, or level, the most urgent message of all")
	fs.StringVar(&f.pool.MinPriority, "min-priority", "", "take nothing below this `priority`: a level, a name or a class")
	fs.StringVar(&f.pool.MaxPriority, "max-priority", "", "take nothing above this `priority`")
	fs.BoolVar(&f.preempts, "preempt", false, "let a message of a higher level take the place of a running one")
	durationVar(cmd, &f.preempt.MinRun, "min-run", "with --preempt: `time` that a program runs before it is preempted")
	fs.IntVar(&f.preempt.Budget, "preempt-budget", 0, "with --preempt: how often one message is preempted (default 10)")
	durationVar(cmd, &f.pool.Timeout, "timeout", "`time` after which a program is ended (default none)")
	fs.Var(textValue(&f.pool.Retry, config.ParseRetry), "retry", "`time` until a failed message is tried again: 10s, or 1s..5m which doubles (default 1s..5m)")
	durationVar(cmd, &f.pool.Grace, "grace", "`time` for programs to finish at the end (default 30s)")
	durationVar(cmd, &f.pool.KillAfter, "kill-after", "`time` from SIGTERM to SIGKILL (default 4s, and at most that at the end)")
	fs.BoolVar(&f.pool.Reply, "reply", false, "send the output as the reply to messages that ask for one")
	fs.StringVar(&f.pool.Dir, "dir", "", "working `directory` of the program")
	fs.StringArrayVar(&f.env, "env", nil, "`NAME=value` for the program; may be repeated")
	fs.StringArrayVar(&f.pool.Windows, "window", nil, "work only at these `times`, such as \"Mon-Fri 19:00-07:00 Europe/Berlin\"; may be repeated")
	fs.BoolVar(&f.pool.WhenSpare, "when-spare", false, "work only while no other pool at the queue is fully busy")
	fs.StringArrayVar(&f.pool.SpareBeside, "spare-beside", nil, "with --when-spare: another `queue` whose pools count; may be repeated")
	durationVar(cmd, &f.pool.LatestStart, "latest-start", "`age` at which a message is started all the same")
	fs.IntVar(&f.scale.Min, "scale-min", 0, "with --scale-max: fewest slots")
	fs.IntVar(&f.scale.Max, "scale-max", 0, "let the number of slots follow demand, up to this `number`")
	durationVar(cmd, &f.scale.CoolDown, "cool-down", "with --scale-max: `time` before slots become fewer (default 1m)")
	fs.IntVar(&f.processes, "processes", 1, "how many worker processes to keep running, each with these slots")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "log each message")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.example {
			_, err := io.WriteString(s.Out, config.PoolsExample())
			return err
		}
		pools, err := f.pools(cmd, args)
		if err != nil {
			return cli.Usage(err)
		}
		if f.processes > 1 && !isSupervised() {
			return f.supervise(cmd.Context(), pools)
		}
		return f.run(cmd.Context(), pools)
	}
	return cmd
}

// poolFlags are the flags that a file has instead.
var poolFlags = []string{
	"exec", "name", "slots", "buffer", "durable-locks", "sessions", "session-idle", "select", "min-priority", "max-priority", "preempt", "min-run", "preempt-budget",
	"timeout", "retry", "grace", "kill-after", "reply", "dir", "env", "window", "when-spare", "spare-beside", "latest-start",
	"scale-min", "scale-max", "cool-down",
}

// pools returns the pools to run, or all that is wrong with them.
func (f *workFlags) pools(cmd *cobra.Command, args []string) ([]config.Pool, error) {
	if f.processes < 1 || f.processes > maxProcesses {
		return nil, fmt.Errorf("--processes: %d is outside 1..%d", f.processes, maxProcesses)
	}
	if f.file == "" {
		p, err := f.flagPool(cmd, args)
		return []config.Pool{p}, err
	}
	var extra []string
	for _, name := range poolFlags {
		if cmd.Flags().Changed(name) {
			extra = append(extra, "--"+name)
		}
	}
	switch {
	case len(extra) > 0:
		return nil, fmt.Errorf("%s: with --file the file says that", strings.Join(extra, ", "))
	case len(args) > 0:
		return nil, fmt.Errorf("%s: with --file the file names the queues", strings.Join(args, " "))
	}
	return config.LoadPools(f.file)
}

// flagPool returns the pool that the flags describe, or all that is wrong with it.
func (f *workFlags) flagPool(cmd *cobra.Command, args []string) (config.Pool, error) {
	p := f.pool
	queues, command := f.exec.split(args)
	for _, q := range queues {
		p.Sources = append(p.Sources, config.PoolSource{Entity: q})
	}
	p.Exec = command
	var errs []error
	if f.preempts {
		p.Preempt = &f.preempt
	} else if f.preempt != (config.Preempt{}) {
		errs = append(errs, errors.New("--min-run and --preempt-budget need --preempt"))
	}
	if cmd.Flags().Changed("scale-max") {
		p.Scale = &f.scale
	} else if f.scale != (config.Scale{}) {
		errs = append(errs, errors.New("--scale-min and --cool-down need --scale-max"))
	}
	if p.Select == "weight" {
		errs = append(errs, errors.New("--select: weights are set in a file: triagemq work --example shows one"))
	}
	if p.Slots == 0 && p.Scale == nil {
		errs = append(errs, errors.New("--slots: must be at least 1"))
	}
	p.Env = map[string]string{}
	for _, entry := range f.env {
		name, value, ok := strings.Cut(entry, "=")
		if !ok {
			errs = append(errs, fmt.Errorf("--env: %q is not NAME=value", entry))
		}
		p.Env[name] = value
	}
	for _, fault := range p.Faults() {
		errs = append(errs, errors.New(flagName(fault.Path)+": "+fault.Problem))
	}
	return p, errors.Join(errs...)
}

// flagName returns the flag for the key of a file: --min-priority for minPriority.
func flagName(path string) string {
	key, _, isList := strings.Cut(path, "[")
	switch key {
	case "source", "sources":
		return "QUEUE"
	case "windows":
		if isList {
			key = "window"
		}
	}
	var b strings.Builder
	for _, r := range key {
		switch {
		case r == '.':
			b.WriteByte('-')
		case unicode.IsUpper(r):
			b.WriteByte('-')
			b.WriteRune(unicode.ToLower(r))
		default:
			b.WriteRune(r)
		}
	}
	return "--" + b.String()
}

// value is a flag whose text has a syntax of its own.
type value[T any] struct {
	into  *T
	parse func(string) (T, error)
	text  string
}

func textValue[T any](into *T, parse func(string) (T, error)) *value[T] {
	return &value[T]{into: into, parse: parse}
}

func (v *value[T]) String() string { return v.text }
func (v *value[T]) Type() string   { return "text" }

func (v *value[T]) Set(text string) error {
	parsed, err := v.parse(text)
	if err != nil {
		return err
	}
	*v.into, v.text = parsed, text
	return nil
}

// durationVar is a flag that reads what files read, so 14d too.
func durationVar(cmd *cobra.Command, into *entity.Duration, name, usage string) {
	cmd.Flags().Var(textValue(into, entity.ParseDuration), name, usage)
}

// longestGrace is the longest time that the pools give their programs at the end.
func longestGrace(pools []config.Pool) time.Duration {
	longest := 30 * time.Second
	for _, p := range pools {
		longest = max(longest, p.Grace.Std()+p.KillAfter.Std())
	}
	return longest
}
