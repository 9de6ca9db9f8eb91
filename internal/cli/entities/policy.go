// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
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

func PolicyCommand(s cli.Streams) *cobra.Command {
	cmd, t := cli.ClientCommand(s, &cobra.Command{
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
	return cli.Group(cmd, policyGet(t), policySet(t), policyDelete(t), policyCheck(t), policyDryRun(t))
}

// about makes a command about the policy of one queue.
func about(t *cli.Target, cmd *cobra.Command, run func(ctx context.Context, a *cli.API, address string, args []string) error) *cobra.Command {
	var from cli.Source
	cmd.Flags().StringVarP(&from.Subscription, "subscription", "s", "", "`name` of the topic's subscription that is meant")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := t.API()
		if err != nil {
			return err
		}
		return run(cmd.Context(), a, from.Of(args[0]), args)
	}
	return cmd
}

func policyGet(t *cli.Target) *cobra.Command {
	return about(t, &cobra.Command{
		Use: "get QUEUE", Short: "Show a policy and what follows from it", Args: cli.Exactly("QUEUE"),
	}, func(ctx context.Context, a *cli.API, address string, _ []string) error {
		var p policyState
		if err := a.Do(ctx, http.MethodGet, cli.Path("policies", address), nil, &p); err != nil {
			return err
		}
		return tellPolicy(t, p)
	})
}

func tellPolicy(t *cli.Target, p policyState) error {
	if t.JSON {
		return cli.AnswerJSON(t.Out, p)
	}
	fmt.Fprintf(t.Out, "Policy of %s, revision %d", p.Entity, p.Revision)
	if !p.Applied {
		fmt.Fprint(t.Out, ", still being applied to what waits")
	}
	fmt.Fprintln(t.Out, ":")
	var policy any
	if err := json.Unmarshal(p.Policy, &policy); err != nil {
		return fmt.Errorf("the policy is not JSON: %w", err)
	}
	if err := cli.AnswerJSON(t.Out, policy); err != nil {
		return err
	}
	tellAdvice(t.Out, p.Warnings, p.Consequences)
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

func policySet(t *cli.Target) *cobra.Command {
	return about(t, &cobra.Command{
		Use: "set QUEUE FILE", Short: "Change a policy and classify anew what waits",
		Long: `Change the policy of a queue or subscription. It holds for the next message at once;
what waits is classified anew, each message keeping its age. FILE may be - for the
standard input.`,
		Args: cli.Exactly("QUEUE", "FILE"),
	}, func(ctx context.Context, a *cli.API, address string, args []string) error {
		f, err := readPolicy(t, args[1])
		if err != nil {
			return err
		}
		var p policyState
		if err := a.Do(ctx, http.MethodPut, cli.Path("policies", address), f.policy, &p); err != nil {
			return err
		}
		return tellPolicy(t, p)
	})
}

func policyDelete(t *cli.Target) *cobra.Command {
	return about(t, &cobra.Command{
		Use: "delete QUEUE", Short: "Take a policy away", Args: cli.Exactly("QUEUE"),
	}, func(ctx context.Context, a *cli.API, address string, _ []string) error {
		return a.Do(ctx, http.MethodDelete, cli.Path("policies", address), nil, nil)
	})
}

func policyDryRun(t *cli.Target) *cobra.Command {
	return about(t, &cobra.Command{
		Use: "dry-run QUEUE FILE", Short: "Say what a policy would make of the messages now waiting",
		Args: cli.Exactly("QUEUE", "FILE"),
	}, func(ctx context.Context, a *cli.API, address string, args []string) error {
		f, err := readPolicy(t, args[1])
		if err != nil {
			return err
		}
		var d dryRun
		if err := a.Do(ctx, http.MethodPost, cli.Path("policies", address, "dry-run"), f.policy, &d); err != nil {
			return err
		}
		if t.JSON {
			return cli.AnswerJSON(t.Out, d)
		}
		for _, change := range d.Changes {
			fmt.Fprintln(t.Out, "-", change)
		}
		fmt.Fprintf(t.Out, "Of %s in %s, %d would change:\n", cli.Count(d.Examined, "message"), d.Entity, d.Changed)
		shifts := cli.NewTable("#MESSAGES", "FROM", "TO")
		for _, s := range d.Shifts {
			shifts.Add(s.Count, s.From, s.To)
		}
		shifts.Print(t.Out)
		tellAdvice(t.Out, d.Warnings, nil)
		return nil
	})
}

// readFile reads a file, or the standard input if it is called -.
func readFile(t *cli.Target, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(t.In)
	}
	return os.ReadFile(name)
}
