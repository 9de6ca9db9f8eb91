// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/server"
)

// policyFile is a file that holds one policy, in YAML or JSON.
type policyFile struct {
	name   string
	config config.Config // of one queue that has the policy
	policy json.RawMessage
}

// A policy is read as that of a queue in a configuration, which knows lines.
const (
	policyHead   = "queues:\n- name: policy\n  policy:\n"
	policyPath   = "queues[0].policy"
	policyLines  = 3
	policyIndent = 4
)

// readPolicy reads a policy and reports every fault with its place.
func readPolicy(t *cli.Target, name string) (policyFile, error) {
	text, err := readFile(t, name)
	if err != nil {
		return policyFile{}, err
	}
	f, err := parsePolicyFile(name, text)
	if err != nil {
		return f, cli.Usage(err)
	}
	return f, nil
}

func parsePolicyFile(name string, text []byte) (policyFile, error) {
	f := policyFile{name: name}
	var b strings.Builder
	b.WriteString(policyHead)
	for line := range strings.Lines(string(bytes.ReplaceAll(text, []byte("\t"), []byte("  ")))) {
		b.WriteString(strings.Repeat(" ", policyIndent) + line)
	}
	var err error
	if f.config, err = config.Parse([]byte(b.String())); err != nil {
		return f, f.placed(cli.Checked(f.config, err))
	}
	f.policy = f.config.Queues[0].Policy
	_, err = policy.Parse(f.policy)
	faults, _ := errors.AsType[policy.Faults](err)
	var placed config.Faults
	for _, fault := range faults {
		placed = append(placed, f.place(fault))
	}
	if placed != nil {
		return f, placed
	}
	return f, nil
}

// place says where in the file something is.
func (f policyFile) place(p policy.Fault) config.Fault {
	at := policyPath
	if p.Path != "" {
		at += "." + p.Path
	}
	fault := f.config.Fault(at, p.Problem)
	fault.Path = p.Path
	return f.moved(fault)
}

// moved undoes what the head around the policy did to a place.
func (f policyFile) moved(fault config.Fault) config.Fault {
	fault.File = f.name
	fault.Line, fault.Column = max(fault.Line-policyLines, 1), max(fault.Column-policyIndent, 1)
	fault.Path = strings.TrimPrefix(strings.TrimPrefix(fault.Path, policyPath), ".")
	return fault
}

// placed undoes it for what config has found.
func (f policyFile) placed(err error) error {
	faults, ok := errors.AsType[config.Faults](err)
	if !ok {
		return err
	}
	moved := make(config.Faults, len(faults))
	for i, fault := range faults {
		moved[i] = f.moved(fault)
	}
	return moved
}

// isConfiguration reports whether a file defines entities and not one policy.
func isConfiguration(text []byte) bool {
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "queues:") || strings.HasPrefix(line, "topics:") {
			return true
		}
	}
	return false
}

func policyCheck(t *cli.Target) *cobra.Command {
	lock := time.Minute
	cmd := &cobra.Command{
		Use: "check FILE", Short: "Find faults in a policy and say what follows from it",
		Long: `Find the faults of a policy, or of every policy in a configuration file, with their
lines, and say in words what follows from it: who is served when, how long each class
can be passed over, which is rejected first. No broker is needed.`,
		Args: cli.Exactly("FILE"),
		RunE: func(_ *cobra.Command, args []string) error { return checkPolicy(t, args[0], lock) },
	}
	cmd.Flags().DurationVar(&lock, "lock", lock, "lock `duration` of the queue that is to have it")
	return cmd
}

func checkPolicy(t *cli.Target, name string, lock time.Duration) error {
	text, err := readFile(t, name)
	if err != nil {
		return err
	}
	if isConfiguration(text) {
		cfg, err := cli.LoadConfig(name)
		if err != nil {
			return cli.Usage(err)
		}
		server.PolicyAdvice(cfg, func(queue string, doubts, consequences []string) {
			fmt.Fprintf(t.Out, "%s:\n", queue)
			tellAdvice(t.Out, doubts, consequences)
		})
		return nil
	}
	f, err := parsePolicyFile(name, text)
	if err != nil {
		return cli.Usage(err)
	}
	p, err := policy.Parse(f.policy)
	if err != nil {
		return err
	}
	var doubts []string
	for _, w := range p.Warnings(lock) {
		doubts = append(doubts, f.place(w).Error())
	}
	tellAdvice(t.Out, doubts, p.Consequences(lock))
	return nil
}
