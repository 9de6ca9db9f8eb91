// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/apply"
	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
)

// applyFlags are what apply can be told.
type applyFlags struct {
	*cli.Target
	file   string
	dryRun bool
	prune  bool
}

func ApplyCommand(s cli.Streams) *cobra.Command {
	var f applyFlags
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Bring a broker's entities in line with a file",
		Long: `Bring the queues, topics, subscriptions, rules and event hubs of a running broker in line with a
file, after showing what that means. Settings of the process in it (listeners, storage, …)
are for serve and not looked at.

What the file does not name is left alone unless --prune says otherwise. Applying the
same file again changes nothing. If something cannot be changed in place, nothing is
changed at all, and the exit code is 1.`,
		Example: `  triagemq apply -f triagemq.yaml --dry-run
  triagemq apply -f triagemq.yaml
  triagemq export | ssh other triagemq apply -f -`,
		Args: cli.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	})
	f.Target = t
	fs := cmd.Flags()
	fs.StringVarP(&f.file, "file", "f", "", "`file` with the entities that are wanted, - is standard input")
	fs.BoolVar(&f.dryRun, "dry-run", false, "show what would be done and do nothing")
	fs.BoolVar(&f.prune, "prune", false, "delete what the file does not name, with its messages")
	return cmd
}

// applied is what apply answers to programs.
type applied struct {
	apply.Plan
	Applied bool `json:"applied"`
}

func (f *applyFlags) run(ctx context.Context) error {
	if f.file == "" {
		return cli.Usage(errors.New("missing -f FILE (use -f - for standard input)"))
	}
	cfg, err := f.load()
	if err != nil {
		return cli.Usage(err)
	}
	a, err := f.API()
	if err != nil {
		return err
	}
	have, err := namespace(ctx, a)
	if err != nil {
		return err
	}
	plan := apply.Diff(apply.Of(cfg), have)
	if f.prune {
		plan = plan.Prune()
	}
	if !f.JSON {
		printPlan(f.Out, plan)
	}
	if err := plan.Conflicts(); err != nil {
		return fmt.Errorf("nothing was changed: these changes are not possible in place:\n%w\n  edit the file, or delete the conflicting entities and apply again", err)
	}
	if !f.dryRun {
		if err := execute(ctx, a, plan); err != nil {
			return err
		}
	}
	switch {
	case f.JSON:
		return cli.AnswerJSON(f.Out, applied{plan, !f.dryRun})
	case len(plan.Steps) == 0:
	case f.dryRun:
		fmt.Fprintln(f.Out, "Nothing was changed: this was a dry run.")
	default:
		fmt.Fprintln(f.Out, "Done.")
	}
	return nil
}

// load reads the file, all faults at once.
func (f *applyFlags) load() (config.Config, error) {
	if f.file != "-" {
		return cli.LoadConfig(f.file)
	}
	text, err := io.ReadAll(f.In)
	if err != nil {
		return config.Config{}, fmt.Errorf("read standard input: %w", err)
	}
	cfg, err := config.Parse(text)
	return cfg, cli.Checked(cfg, err)
}

// marks are what the lines of a plan begin with.
var marks = map[apply.Verb]string{apply.Create: "+", apply.Update: "~", apply.Delete: "-"}

// printPlan shows a plan: a line for each entity, with what changes below it.
func printPlan(w io.Writer, p apply.Plan) {
	for _, s := range p.Steps {
		fmt.Fprintf(w, "%s %-12s  %s\n", marks[s.Verb], s.Kind, s.Path())
		for _, c := range s.Changes {
			if s.Verb == apply.Create {
				fmt.Fprintf(w, "      %s: %s\n", c.Property, c.To)
				continue
			}
			fmt.Fprintf(w, "      %s: %s -> %s\n", c.Property, orNone(c.From), orNone(c.To))
		}
		if s.Conflict != nil {
			fmt.Fprintf(w, "      impossible: %s\n", strings.TrimSpace(s.Conflict.Error()))
		}
	}
	for _, place := range p.Unmanaged {
		fmt.Fprintf(w, "= %-12s  %s is not in the file and stays; --prune would delete it\n", place.Kind, place.Path())
	}
	if len(p.Steps) == 0 {
		fmt.Fprintln(w, "Nothing to do: everything is as the file says.")
		return
	}
	fmt.Fprintf(w, "%d to create, %d to change, %d to delete.\n", p.Count(apply.Create), p.Count(apply.Update), p.Count(apply.Delete))
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// definitionOf is an entity of which only the definition matters.
type definitionOf[D any] struct {
	Definition D `json:"definition"`
}

// definitions reads the definitions in a list.
func definitions[D any](ctx context.Context, a *cli.API, path string) ([]D, error) {
	items, err := cli.ListAll[definitionOf[D]](ctx, a, path, nil)
	out := make([]D, len(items))
	for i, item := range items {
		out[i] = item.Definition
	}
	return out, err
}

// namespace reads every definition there is.
func namespace(ctx context.Context, a *cli.API) (apply.Namespace, error) {
	var n apply.Namespace
	var err error
	if n.Queues, err = definitions[entity.Queue](ctx, a, "/queues"); err != nil {
		return n, err
	}
	topics, err := definitions[entity.Topic](ctx, a, "/topics")
	if err != nil {
		return n, err
	}
	for _, t := range topics {
		subs, err := definitions[entity.Subscription](ctx, a, cli.Path("topics", t.Name, "subscriptions"))
		if err != nil {
			return n, err
		}
		n.Topics = append(n.Topics, config.Topic{Topic: t, Subscriptions: subs})
	}
	n.Hubs, err = definitions[entity.Hub](ctx, a, "/hubs")
	return n, err
}

// execute takes the steps of a plan. It stops at the first that fails and says
// which it was; applying the file again goes on from there.
func execute(ctx context.Context, a *cli.API, plan apply.Plan) error {
	for _, s := range plan.Steps {
		method := http.MethodPut
		if s.Verb == apply.Delete {
			method = http.MethodDelete
		}
		at, body := request(s)
		if err := a.Do(ctx, method, at, body, nil); err != nil && (s.Verb != apply.Delete || !cli.NotFound(err)) {
			return fmt.Errorf("%v: %w", s, err)
		}
	}
	return nil
}

// request returns where a step goes and what it says.
func request(s apply.Step) (at string, body any) {
	switch s.Kind {
	case apply.Queue:
		at, body = cli.Path("queues", s.Name), s.NewQueue
	case apply.Topic:
		at, body = cli.Path("topics", s.Name), s.NewTopic
	case apply.Subscription:
		at, body = cli.Path("topics", s.Topic, "subscriptions", s.Name), s.NewSubscription
	case apply.Hub:
		at, body = cli.Path("hubs", s.Name), s.NewHub
	case apply.Group:
		at, body = cli.Path("hubs", s.Hub, "groups", s.Name), s.NewGroup
	case apply.Rule:
		at, body = cli.Path("topics", s.Topic, "subscriptions", s.Subscription, "rules", s.Name), s.NewRule
	}
	if s.Verb == apply.Delete {
		return at, nil
	}
	return at, body
}
