// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/server/credentials"
)

func KeyCommand(s cli.Streams) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "key", Short: "Show and change the keys of a broker, on its machine",
		Long: `Show and change the keys of the namespace that the broker made itself. They are in its
data directory, and a user who may read it may use these commands, whether the broker runs or
not. Keys in the configuration file are shown if it is given, and changed in the file.`,
	}, keyShowCommand(s), keyRotateCommand(s))
}

// store is a data directory and what is configured for the broker that runs on it.
type store struct {
	serveFlags
	cfg config.Config
}

// storeFlags has a command find the data directory in the way of serve.
func storeFlags(cmd *cobra.Command) *store {
	st := &store{}
	fs := cmd.Flags()
	fs.StringVar(&st.Data, "data", "", "`directory` of the store (default ./triagemq-data)")
	fs.StringVar(&st.file, "config", "", "YAML `file` that the broker is started with")
	return st
}

func (st *store) open() (err error) {
	if st.cfg, err = st.settings(os.LookupEnv); err != nil {
		return cli.Usage(err)
	}
	return nil
}

// keys returns the rules that the broker made.
func (st *store) keys() (access.Rules, error) {
	rules, err := credentials.Keys(st.cfg.Data)
	if errors.Is(err, credentials.ErrNoKeys) {
		return nil, cli.WithAdvice(err,
			"the first start of `triagemq serve` without --dev makes one; is it the right --data?")
	}
	return rules, err
}

// configured returns the rules of the file.
func (st *store) configured() access.Rules { return access.OfEntity(st.cfg.Security.Rules) }

func keyShowCommand(s cli.Streams) *cobra.Command {
	var asJSON bool
	var st *store
	cmd := &cobra.Command{
		Use: "show [NAME]", Short: "Show the keys of the namespace, with connection strings", Args: cobra.MaximumNArgs(1),
		Example: `  triagemq key show --data /var/lib/triagemq
  triagemq key show --config triagemq.yaml --json`,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := st.open(); err != nil {
				return err
			}
			kept, err := st.keys()
			if err != nil && (!errors.Is(err, credentials.ErrNoKeys) || len(st.configured()) == 0) {
				return err
			}
			rules := kept.With(st.configured())
			if len(args) > 0 {
				if rules = rules.Named(args[0]); len(rules) == 0 {
					return fmt.Errorf("no rule is called %q", args[0])
				}
			}
			if asJSON {
				return cli.AnswerJSON(s.Out, rules)
			}
			for _, r := range rules {
				st.show(s.Out, r)
			}
			return nil
		},
	}
	st = storeFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "answer in JSON")
	return cmd
}

// show prints a rule with a connection string for each of its keys.
func (st *store) show(w io.Writer, r access.Rule) {
	from := ""
	if len(st.configured().Named(r.Name)) > 0 {
		from = ", in " + filepath.Base(st.file)
	}
	fmt.Fprintf(w, "%s (%s)%s\n", r.Name, strings.ReplaceAll(r.Rights.String(), ",", ", "), from)
	fmt.Fprintf(w, "  primary    %s\n", st.connection(r.Name, r.PrimaryKey))
	if r.SecondaryKey != "" {
		fmt.Fprintf(w, "  secondary  %s\n", st.connection(r.Name, r.SecondaryKey))
	}
}

// connection returns a string that fits the latest broker on the data directory, or
// the one that is configured.
func (st *store) connection(rule, key string) string {
	at, ok := lastReach(st.cfg.Data)
	if !ok {
		encrypted := st.cfg.TLS.CertFile != ""
		at = reach{endpointOf(st.cfg.Listeners, encrypted), encrypted}
	}
	return connectionString(at, rule, key)
}

func keyRotateCommand(s cli.Streams) *cobra.Command {
	var both bool
	var st *store
	cmd := &cobra.Command{
		Use: "rotate [NAME]", Short: "Make a new primary key; the old one becomes the secondary key", Args: cobra.MaximumNArgs(1),
		Long: `Make a new primary key for a rule that the broker made, by default
RootManageSharedAccessKey. The old primary key becomes the secondary one and stays good, so
that clients can change over; the old secondary key is void. Rotate once more when all
clients have the new key.

A broker that runs on the data directory is told with SIGHUP and takes the keys over at once.`,
		Example: `  triagemq key rotate --data /var/lib/triagemq
  triagemq key rotate --data /var/lib/triagemq --both   # a key has leaked: both are void at once`,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := st.open(); err != nil {
				return err
			}
			name := access.RootRule
			if len(args) > 0 {
				name = args[0]
			}
			change := access.Rule.Rotate
			if both {
				change = func(r access.Rule) access.Rule { return access.NewRule(r.Name, r.Rights) }
			}
			return st.rotate(s.Out, name, change)
		},
	}
	st = storeFlags(cmd)
	cmd.Flags().BoolVar(&both, "both", false, "change both keys: who has an old one is shut out at once")
	return cmd
}

func (st *store) rotate(w io.Writer, name string, change func(access.Rule) access.Rule) error {
	if len(st.configured().Named(name)) > 0 {
		return fmt.Errorf("the rule %s is in %s: change its keys there, then send the broker SIGHUP", name, filepath.Base(st.file))
	}
	if _, err := st.keys(); err != nil {
		return err
	}
	r, err := credentials.ChangeKey(st.cfg.Data, name, change)
	if err != nil {
		return err
	}
	st.show(w, r)
	if st.file == "" {
		fmt.Fprintln(w, "If the broker's configuration file has a rule of that name, that one counts: give the file with --config to see.")
	}
	pid, err := brokerOn(st.cfg.Data)
	if err == nil && pid > 0 {
		err = hangUp(pid)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the keys were changed, but the broker could not be told: send it SIGHUP, or restart it: %w", err)
	case pid == 0:
		fmt.Fprintln(w, "No broker is running on it here; the next start uses them.")
	default:
		fmt.Fprintf(w, "The broker that is running on it, process %d, was told to use them.\n", pid)
	}
	return nil
}
