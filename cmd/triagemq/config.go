// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/server"
)

func configCommand(s streams) *cobra.Command {
	return group(&cobra.Command{Use: "config", Short: "Check a configuration file, or print one to start from"},
		configCheckCommand(s), configExampleCommand(s))
}

func configExampleCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "example", Short: "Print a configuration file that explains itself", Args: exactly(),
		Example: "  triagemq config example > triagemq.yaml",
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(s.out, config.Example())
			return err
		},
	}
}

func configCheckCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "check FILE", Short: "Report every fault of a configuration file at once", Args: exactly("FILE"),
		Long: `Report every fault of a configuration file at once, with its line, conditions and priority
policies included, keys that are too short, and certificates that cannot be read. Of a
file without faults it says what is in it and what follows from its policies. The exit code is 1 if there are faults.`,
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := loadConfig(args[0])
			err = checkedProcess(cfg, err)
			if fs, ok := errors.AsType[config.Faults](err); ok {
				return fmt.Errorf("%s has %s\n%w", args[0], count(len(fs), "fault"), err)
			}
			if err != nil {
				return err
			}
			summarize(s.out, args[0], cfg)
			return nil
		},
	}
}

// loadConfig reads a configuration file and reports every fault in it at once.
func loadConfig(name string) (config.Config, error) {
	cfg, err := config.Load(name)
	return cfg, checked(cfg, err)
}

// checked adds to the faults with which a file was read, if any, those that other packages
// find in what could be read.
func checked(cfg config.Config, err error) error { return withFaults(err, check(cfg)) }

// checkedProcess adds the faults of what only the process of a broker needs: keys that are
// too short, and files of certificates.
func checkedProcess(cfg config.Config, err error) error {
	return withFaults(err, append(cfg.KeyFaults(), server.CheckCertificates(cfg)...))
}

// withFaults adds faults to those of err. Another error stays as it is.
func withFaults(err error, more config.Faults) error {
	faults, ok := errors.AsType[config.Faults](err)
	if err != nil && !ok {
		return err
	}
	if faults = append(faults, more...); len(faults) == 0 {
		return nil
	}
	return faults
}

// check returns the faults in conditions, actions and policies.
func check(cfg config.Config) config.Faults {
	var fs config.Faults
	for i, q := range cfg.Queues {
		fs = append(fs, policyFaults(cfg, fmt.Sprintf("queues[%d].policy", i), q.Policy)...)
	}
	for i, t := range cfg.Topics {
		for j, s := range t.Subscriptions {
			at := fmt.Sprintf("topics[%d].subscriptions[%d]", i, j)
			fs = append(fs, policyFaults(cfg, at+".policy", s.Policy)...)
			if s.DefaultRule != nil {
				fs = append(fs, ruleFaults(cfg, at+".defaultRule", *s.DefaultRule)...)
			}
			for n, r := range s.Rules {
				fs = append(fs, ruleFaults(cfg, fmt.Sprintf("%s.rules[%d]", at, n), r)...)
			}
		}
	}
	return fs
}

func ruleFaults(cfg config.Config, at string, r entity.Rule) config.Faults {
	var fs config.Faults
	if r.Filter.SQL != "" {
		if _, err := filter.Parse(r.Filter.SQL, parameters(r.Filter.Parameters)); err != nil {
			fs = append(fs, cfg.Fault(at+".filter", sqlProblem(err)))
		}
	}
	if r.Action.SQL != "" {
		if _, err := filter.ParseAction(r.Action.SQL, parameters(r.Action.Parameters)); err != nil {
			fs = append(fs, cfg.Fault(at+".action", sqlProblem(err)))
		}
	}
	return fs
}

// sqlProblem is what is wrong with a text, with its place in it.
func sqlProblem(err error) string { return strings.TrimPrefix(err.Error(), "filter: ") }

// parameters returns constants as the filter language knows them. Their values do
// not matter to a check, only their names.
func parameters(values map[string]entity.Value) filter.Params {
	out := filter.Params{}
	for name, v := range values {
		typed, err := filter.ParseTyped(v.Type(), v.String())
		if err == nil {
			out[name] = typed
		}
	}
	return out
}

func policyFaults(cfg config.Config, at string, raw []byte) config.Faults {
	_, err := policy.Parse(raw)
	if err == nil {
		return nil
	}
	found, ok := errors.AsType[policy.Faults](err)
	if !ok {
		return config.Faults{cfg.Fault(at, err.Error())}
	}
	var fs config.Faults
	for _, f := range found {
		fs = append(fs, cfg.Fault(joinPath(at, f.Path), f.Problem))
	}
	return fs
}

func joinPath(at, below string) string {
	if below == "" || below[0] == '[' {
		return at + below
	}
	return at + "." + below
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
		count(len(cfg.Queues), "queue"), count(len(cfg.Topics), "topic"), count(subs, "subscription"), count(rules, "rule"))
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
