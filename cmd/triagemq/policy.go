// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"
)

// policyState is the policy of a queue, as the API tells it.
type policyState struct {
	Entity       string          `json:"entity"`
	Revision     int64           `json:"revision"`
	Applied      bool            `json:"applied"`
	Policy       json.RawMessage `json:"policy"`
	Warnings     []string        `json:"warnings"`
	Consequences []string        `json:"consequences"`
}

// dryRun is what a policy would do, as the API tells it.
type dryRun struct {
	Entity   string `json:"entity"`
	Examined int64  `json:"examined"`
	Changed  int64  `json:"changed"`
	Shifts   []struct {
		From  classLevel `json:"from"`
		To    classLevel `json:"to"`
		Count int64      `json:"count"`
	} `json:"shifts"`
	Changes      []string `json:"changes"`
	Warnings     []string `json:"warnings"`
	Consequences []string `json:"consequences"`
}

type classLevel struct {
	Class string `json:"class"`
	Level int    `json:"level"`
}

func (s classLevel) String() string {
	if s.Class == "" {
		return fmt.Sprintf("no class, level %d", s.Level)
	}
	return fmt.Sprintf("%s, level %d", s.Class, s.Level)
}

func policyCommand(s streams) *cobra.Command {
	cmd, t := clientCommand(s, &cobra.Command{
		Use: "policy", Short: "Manage policies: priority classes, order, limits, objectives",
		Long: `A policy puts the messages of a queue or subscription into classes and says in which
order they are served, which ones are rejected first under load, and the objective
of each.
It is written in YAML or JSON; docs/guide/priorities.md names every field.`,
		Example: `  triagemq policy check orders-policy.yaml
  triagemq policy dry-run orders orders-policy.yaml
  triagemq policy set orders orders-policy.yaml
  triagemq policy get orders`,
	})
	return group(cmd, policyGet(t), policySet(t), policyDelete(t), policyCheck(t), policyDryRun(t))
}

// about makes a command about the policy of one queue.
func about(t *target, cmd *cobra.Command, run func(ctx context.Context, a *api, address string, args []string) error) *cobra.Command {
	var from source
	cmd.Flags().StringVarP(&from.subscription, "subscription", "s", "", "`name` of the topic's subscription that is meant")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := t.api()
		if err != nil {
			return err
		}
		return run(cmd.Context(), a, from.of(args[0]), args)
	}
	return cmd
}

func policyGet(t *target) *cobra.Command {
	return about(t, &cobra.Command{
		Use: "get QUEUE", Short: "Show a policy and what follows from it", Args: exactly("QUEUE"),
	}, func(ctx context.Context, a *api, address string, _ []string) error {
		var p policyState
		if err := a.do(ctx, http.MethodGet, path("policies", address), nil, &p); err != nil {
			return err
		}
		return tellPolicy(t, p)
	})
}

func tellPolicy(t *target, p policyState) error {
	if t.json {
		return answerJSON(t.out, p)
	}
	fmt.Fprintf(t.out, "Policy of %s, revision %d", p.Entity, p.Revision)
	if !p.Applied {
		fmt.Fprint(t.out, ", still being applied to what waits")
	}
	fmt.Fprintln(t.out, ":")
	var policy any
	if err := json.Unmarshal(p.Policy, &policy); err != nil {
		return fmt.Errorf("the policy is not JSON: %w", err)
	}
	if err := answerJSON(t.out, policy); err != nil {
		return err
	}
	tellAdvice(t.out, p.Warnings, p.Consequences)
	return nil
}

// tellAdvice writes what is doubtful and what follows.
func tellAdvice(w io.Writer, warnings, consequences []string) {
	for _, text := range warnings {
		fmt.Fprintln(w, "warning:", text)
	}
	for _, text := range consequences {
		fmt.Fprintln(w, "-", text)
	}
}

func policySet(t *target) *cobra.Command {
	return about(t, &cobra.Command{
		Use: "set QUEUE FILE", Short: "Change a policy and classify anew what waits",
		Long: `Change the policy of a queue or subscription. It holds for the next message at once;
what waits is classified anew, each message keeping its age. FILE may be - for the
standard input.`,
		Args: exactly("QUEUE", "FILE"),
	}, func(ctx context.Context, a *api, address string, args []string) error {
		f, err := readPolicy(t, args[1])
		if err != nil {
			return err
		}
		var p policyState
		if err := a.do(ctx, http.MethodPut, path("policies", address), f.policy, &p); err != nil {
			return err
		}
		return tellPolicy(t, p)
	})
}

func policyDelete(t *target) *cobra.Command {
	return about(t, &cobra.Command{
		Use: "delete QUEUE", Short: "Take a policy away", Args: exactly("QUEUE"),
	}, func(ctx context.Context, a *api, address string, _ []string) error {
		return a.do(ctx, http.MethodDelete, path("policies", address), nil, nil)
	})
}

func policyDryRun(t *target) *cobra.Command {
	return about(t, &cobra.Command{
		Use: "dry-run QUEUE FILE", Short: "Say what a policy would make of the messages now waiting",
		Args: exactly("QUEUE", "FILE"),
	}, func(ctx context.Context, a *api, address string, args []string) error {
		f, err := readPolicy(t, args[1])
		if err != nil {
			return err
		}
		var d dryRun
		if err := a.do(ctx, http.MethodPost, path("policies", address, "dry-run"), f.policy, &d); err != nil {
			return err
		}
		if t.json {
			return answerJSON(t.out, d)
		}
		for _, change := range d.Changes {
			fmt.Fprintln(t.out, "-", change)
		}
		fmt.Fprintf(t.out, "Of %s in %s, %d would change:\n", count(d.Examined, "message"), d.Entity, d.Changed)
		shifts := newTable("#MESSAGES", "FROM", "TO")
		for _, s := range d.Shifts {
			shifts.add(s.Count, s.From, s.To)
		}
		shifts.print(t.out)
		tellAdvice(t.out, d.Warnings, nil)
		return nil
	})
}

// readFile reads a file, or the standard input if it is called -.
func readFile(t *target, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(t.in)
	}
	return os.ReadFile(name)
}
