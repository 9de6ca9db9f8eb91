// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
)

// entityCommand is what the commands about queues, topics and subscriptions differ in.
type entityCommand struct {
	*cli.Target
	noun       string
	args       []string              // what names one: NAME, or TOPIC NAME
	all        func([]string) string // the path of the list, from all arguments but the name
	properties []property
	// pauses says what is paused when the user does not say.
	pauses pause
	// list makes the table of a list.
	list func([]entityView) *cli.Table
	// prepare completes a new definition from flags of its own; nil does nothing.
	prepare func(cmd *cobra.Command, definition map[string]any) error
	// more prints what there is to show beside properties and counts; nil is
	// nothing.
	more func(context.Context, *cli.API, entityView) error
}

// entityView is an entity as the API shows it.
type entityView struct {
	Definition map[string]any `json:"definition"`
	Runtime    runtimeView    `json:"runtime"`
	Paused     pause          `json:"paused"`
}

func (e entityView) text(property string) string {
	s, _ := e.Definition[property].(string)
	return s
}

// state is the status, and what is paused besides.
func (e entityView) state() string {
	if p := e.Paused.String(); p != "" {
		return e.text("status") + ", " + p + " paused"
	}
	return e.text("status")
}

// pause is what of an entity is suspended.
type pause struct {
	Sending   bool `json:"sending,omitzero"`
	Receiving bool `json:"receiving,omitzero"`
}

// String is empty when nothing is suspended.
func (p pause) String() string {
	switch {
	case p.Sending && p.Receiving:
		return "sending and receiving"
	case p.Sending:
		return "sending"
	case p.Receiving:
		return "receiving"
	}
	return ""
}

// one is the path of one entity.
func (k *entityCommand) one(args []string) string {
	last := len(args) - 1
	return k.all(args[:last]) + cli.Path(args[last])
}

func (k *entityCommand) name(args []string) string {
	if len(args) == 2 {
		return k.noun + " " + args[0] + "/" + args[1]
	}
	return k.noun + " " + args[0]
}

// on runs an operation with the API at hand.
func (k *entityCommand) on(do func(cmd *cobra.Command, a *cli.API, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a, err := k.API()
		if err != nil {
			return err
		}
		return do(cmd, a, args)
	}
}

// use is the usage line of a command with the arguments that name one entity.
func (k *entityCommand) use(verb string) string {
	for _, a := range k.args {
		verb += " " + a
	}
	return verb
}

func (k *entityCommand) createCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: k.use("create"), Short: "Create a " + k.noun, Args: cli.Exactly(k.args...),
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			definition, err := defined(cmd, k.properties)
			if err != nil {
				return err
			}
			last := len(args) - 1
			definition["name"] = args[last]
			if k.prepare != nil {
				if err := k.prepare(cmd, definition); err != nil {
					return err
				}
			}
			return k.change(cmd.Context(), a, http.MethodPost, k.all(args[:last]), definition, "Created "+k.name(args))
		}),
	}
	define(cmd, k.properties)
	return cmd
}

func (k *entityCommand) updateCommand() *cobra.Command {
	var unset []string
	cmd := &cobra.Command{
		Use: k.use("update"), Short: "Change properties of a " + k.noun, Args: cli.Exactly(k.args...),
		Long: "Change the properties that are given. Others stay as they are.",
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			patch, err := defined(cmd, k.properties)
			if err != nil {
				return err
			}
			for _, name := range unset {
				if !slices.ContainsFunc(k.properties, func(p property) bool { return p.name == name }) {
					return cli.Usage(fmt.Errorf("--unset: %q is no property of a %s that can be changed", name, k.noun))
				}
				patch[name] = nil
			}
			if len(patch) == 0 {
				return cli.Usage(fmt.Errorf("nothing to change; %s --help lists the properties", cmd.CommandPath()))
			}
			return k.change(cmd.Context(), a, http.MethodPatch, k.one(args), patch, "Changed "+k.name(args))
		}),
	}
	define(cmd, k.properties)
	unsetFlag(cmd, &unset)
	return cmd
}

// change sends a definition and says what was done, or shows what became of it.
func (k *entityCommand) change(ctx context.Context, a *cli.API, method, path string, body any, done string) error {
	var answer json.RawMessage
	if err := a.Do(ctx, method, path, body, &answer); err != nil {
		return err
	}
	if k.JSON {
		return cli.AnswerJSON(k.Out, answer)
	}
	fmt.Fprintln(k.Out, done+".")
	return nil
}

func (k *entityCommand) listCommand() *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Use: "list", Short: "List " + k.noun + "s with their counts", Args: cli.Exactly(k.args[:len(k.args)-1]...),
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			items, err := cli.ListAll[json.RawMessage](cmd.Context(), a, k.all(args), url.Values{"prefix": {prefix}})
			if err != nil {
				return err
			}
			if k.JSON {
				return cli.AnswerJSON(k.Out, items)
			}
			views := make([]entityView, len(items))
			for i, item := range items {
				if err := json.Unmarshal(item, &views[i]); err != nil {
					return err
				}
			}
			if len(views) == 0 {
				fmt.Fprintf(k.Err, "There are no such %ss.\n", k.noun)
				return nil
			}
			k.list(views).Print(k.Out)
			return nil
		}),
	}
	if len(k.args) > 1 {
		cmd.Use += " " + k.args[0]
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "only names that `begin` with this")
	return cmd
}

func (k *entityCommand) showCommand() *cobra.Command {
	return &cobra.Command{
		Use: k.use("show"), Short: "Show a " + k.noun + ": properties, counts, levels", Args: cli.Exactly(k.args...),
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			var raw json.RawMessage
			if err := a.Do(cmd.Context(), http.MethodGet, k.one(args), nil, &raw); err != nil {
				return err
			}
			if k.JSON {
				return cli.AnswerJSON(k.Out, raw)
			}
			var v entityView
			if err := json.Unmarshal(raw, &v); err != nil {
				return err
			}
			fmt.Fprintln(k.Out, k.name(args))
			v.print(k.Out)
			if k.more != nil {
				return k.more(cmd.Context(), a, v)
			}
			return nil
		}),
	}
}

func (k *entityCommand) deleteCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: k.use("delete"), Short: "Delete a " + k.noun + " with its messages", Args: cli.Exactly(k.args...),
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			held, err := k.messageCount(cmd.Context(), a, args)
			if err != nil {
				return err
			}
			if held > 0 && !force {
				return fmt.Errorf("%s contains %s\n  use --force to delete it with its messages", k.name(args), cli.Count(held, "message"))
			}
			return k.change(cmd.Context(), a, http.MethodDelete, k.one(args), nil, "Deleted "+k.name(args))
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "delete it with its messages")
	return cmd
}

// messageCount returns how many messages are in an entity, and in what belongs to it.
func (k *entityCommand) messageCount(ctx context.Context, a *cli.API, args []string) (int64, error) {
	var v entityView
	if err := a.Do(ctx, http.MethodGet, k.one(args), nil, &v); err != nil {
		return 0, err
	}
	sum := v.Runtime.total()
	if k.noun == nounTopic {
		subs, err := cli.ListAll[entityView](ctx, a, k.one(args)+"/subscriptions", nil)
		if err != nil {
			return 0, err
		}
		for _, s := range subs {
			sum += s.Runtime.total()
		}
	}
	return sum, nil
}

func (k *entityCommand) purgeCommand() *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use: k.use("purge"), Short: "Remove the messages of a " + k.noun, Args: cli.Exactly(k.args...),
		Long: "Remove messages permanently, by default all of them. Messages locked by a receiver stay.",
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			query := ""
			if most > 0 {
				query = "?max=" + strconv.Itoa(most)
			}
			var answer cli.Removed
			if err := a.Do(cmd.Context(), http.MethodDelete, k.one(args)+"/messages"+query, nil, &answer); err != nil {
				return err
			}
			if k.JSON {
				return cli.AnswerJSON(k.Out, answer)
			}
			fmt.Fprintf(k.Out, "Removed %s of %s.\n", cli.Count(answer.Removed, "message"), k.name(args))
			return nil
		}),
	}
	cmd.Flags().IntVarP(&most, "count", "n", 0, "how many to remove at most, the oldest first; 0 is all")
	return cmd
}

func (k *entityCommand) pauseCommand() *cobra.Command {
	var p pause
	cmd := &cobra.Command{
		Use: k.use("pause"), Short: "Suspend a " + k.noun, Args: cli.Exactly(k.args...),
		Long: "Suspend sending, receiving or both; if none is named, " + k.pauses.String() + `.
Nothing is lost, and receivers stay connected.`,
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			if p == (pause{}) {
				p = k.pauses
			}
			return k.change(cmd.Context(), a, http.MethodPut, k.one(args)+"/paused", p, "Paused "+p.String()+" of "+k.name(args))
		}),
	}
	cmd.Flags().BoolVar(&p.Sending, "sending", false, "reject sends")
	cmd.Flags().BoolVar(&p.Receiving, "receiving", false, "stop deliveries")
	return cmd
}

func (k *entityCommand) resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use: k.use("resume"), Short: "Resume a paused " + k.noun, Args: cli.Exactly(k.args...),
		RunE: k.on(func(cmd *cobra.Command, a *cli.API, args []string) error {
			return k.change(cmd.Context(), a, http.MethodDelete, k.one(args)+"/paused", nil, "Resumed "+k.name(args))
		}),
	}
}
