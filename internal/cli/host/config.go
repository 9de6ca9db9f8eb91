// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/server"
)

func ConfigCommand(s cli.Streams) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "config", Short: "Check a configuration file, or print one to start from"},
		configCheckCommand(s), configExampleCommand(s))
}

func configExampleCommand(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use: "example", Short: "Print a configuration file that explains itself", Args: cli.Exactly(),
		Example: "  triagemq config example > triagemq.yaml",
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(s.Out, config.Example())
			return err
		},
	}
}

func configCheckCommand(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use: "check FILE", Short: "Report every fault of a configuration file at once", Args: cli.Exactly("FILE"),
		Long: `Report every fault of a configuration file at once, with its line, conditions and priority
policies included, keys that are too short, and certificates that cannot be read. Of a
file without faults it says what is in it and what follows from its policies. The exit code is 1 if there are faults.`,
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := cli.LoadConfig(args[0])
			err = checkedProcess(cfg, err)
			if fs, ok := errors.AsType[config.Faults](err); ok {
				return fmt.Errorf("%s has %s\n%w", args[0], cli.Count(len(fs), "fault"), err)
			}
			if err != nil {
				return err
			}
			summarize(s.Out, args[0], cfg)
			return nil
		},
	}
}

// checkedProcess adds the faults of what only the process of a broker needs: keys that are
// too short, and files of certificates.
func checkedProcess(cfg config.Config, err error) error {
	return cli.WithFaults(err, append(cfg.KeyFaults(), server.CheckCertificates(cfg)...))
}

// summarize says what is in a file, what it needs besides, and what follows from its
// policies.
func summarize(w io.Writer, name string, cfg config.Config) {
	subs, rules := 0, 0
	for _, t := range cfg.Topics {
		subs += len(t.Subscriptions)
		for _, s := range t.Subscriptions {
			rules += len(s.Rules)
			conclude(w, entity.SubscriptionPath(t.Name, s.Name), s.Policy, s.WithDefaults().LockDuration)
		}
	}
	for _, q := range cfg.Queues {
		conclude(w, q.Name, q.Policy, q.WithDefaults().LockDuration)
	}
	for _, f := range cfg.TargetsElsewhere() {
		fmt.Fprintf(w, "%v; a broker that does not have it either refuses the file\n", f)
	}
	fmt.Fprintf(w, "%s is fine: %s, %s, %s, %s.\n", name,
		cli.Count(len(cfg.Queues), "queue"), cli.Count(len(cfg.Topics), "topic"), cli.Count(subs, "subscription"), cli.Count(rules, "rule"))
}

// conclude says what follows from one policy.
func conclude(w io.Writer, name string, raw []byte, lock entity.Duration) {
	if len(raw) == 0 {
		return
	}
	p, err := policy.Parse(raw)
	if err != nil {
		return // checked before
	}
	fmt.Fprintf(w, "%s:\n", name)
	for _, warning := range p.Warnings(lock.Std()) {
		fmt.Fprintf(w, "  warning: %v\n", warning)
	}
	for _, c := range p.Consequences(lock.Std()) {
		fmt.Fprintf(w, "  %s\n", c)
	}
}
