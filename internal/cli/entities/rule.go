// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/apply"
	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/entity"
)

// rules is what the commands about rules have in common.
type rules struct{ *cli.Target }

func RuleCommand(s cli.Streams) *cobra.Command {
	cmd, t := cli.ClientCommand(s, &cobra.Command{
		Use: "rule", Short: "Create, list, show, change, delete and try out rules of subscriptions",
		Long: `A subscription takes a message if one of its rules does. A rule is a condition, in SQL or by
exact matches, and may have an action that changes the copy.`,
		Example: `  triagemq rule create jobs high urgent --filter "Priority = 'High' OR amount > 1000"
  triagemq rule test jobs --property Priority=High --property amount=5`,
	})
	r := rules{t}
	return cli.Group(cmd, r.put("create", "Add a rule", http.MethodPost), r.list(), r.show(),
		r.put("update", "Replace a rule", http.MethodPut), r.delete(), r.test())
}

// with runs an operation with the API and the path of the rules of a subscription.
func (r rules) with(do func(cmd *cobra.Command, a *cli.API, path string, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a, err := r.API()
		if err != nil {
			return err
		}
		return do(cmd, a, cli.Path("topics", args[0], "subscriptions", args[1], "rules"), args[2:])
	}
}

// ruleFlags describe a rule.
type ruleFlags struct {
	filter      string
	action      string
	correlation []string
	properties  []string
}

func (f ruleFlags) rule(name string) (entity.Rule, error) {
	rule := entity.Rule{Name: name, Filter: entity.Filter{SQL: f.filter}, Action: entity.Action{SQL: f.action}}
	if len(f.correlation)+len(f.properties) == 0 {
		return rule, nil
	}
	if f.filter != "" {
		return rule, cli.Usage(fmt.Errorf("--filter cannot be combined with correlation matches; create two rules"))
	}
	values, err := cli.ParseProperties(f.properties)
	if err != nil {
		return rule, err
	}
	c := &entity.Correlation{Properties: values}
	fields := map[string]*string{
		"correlationId": &c.CorrelationID, "messageId": &c.MessageID, "to": &c.To, "replyTo": &c.ReplyTo,
		"label": &c.Label, "sessionId": &c.SessionID, "replyToSessionId": &c.ReplyToSessionID, "contentType": &c.ContentType,
	}
	for _, pair := range f.correlation {
		field, value, ok := strings.Cut(pair, "=")
		if !ok || fields[field] == nil {
			return rule, cli.Usage(fmt.Errorf("--match %q is not field=value with a field of correlationId, messageId, to, replyTo, label, sessionId, replyToSessionId, contentType", pair))
		}
		*fields[field] = value
	}
	rule.Filter.Correlation = c
	return rule, nil
}

func (r rules) put(verb, what, method string) *cobra.Command {
	var f ruleFlags
	cmd := &cobra.Command{
		Use: verb + " TOPIC SUBSCRIPTION NAME", Short: what + ", effective for the next message", Args: cli.Exactly("TOPIC", "SUBSCRIPTION", "NAME"),
		Long: what + `, effective for the next message. Without a condition it takes everything. A new
subscription has a rule called $Default that takes everything; delete it if others shall decide.`,
		RunE: r.with(func(cmd *cobra.Command, a *cli.API, at string, args []string) error {
			rule, err := f.rule(args[0])
			if err != nil {
				return err
			}
			if method == http.MethodPut {
				at += cli.Path(args[0])
				if err := a.Do(cmd.Context(), http.MethodGet, at, nil, nil); err != nil {
					return err // updating is not creating
				}
			}
			var answer entity.Rule
			if err := a.Do(cmd.Context(), method, at, rule, &answer); err != nil {
				return err
			}
			if r.JSON {
				return cli.AnswerJSON(r.Out, answer)
			}
			fmt.Fprintf(r.Out, "Rule %s takes: %s.\n", answer.Name, apply.Describe(answer))
			return nil
		}),
	}
	fs := cmd.Flags()
	fs.StringVar(&f.filter, "filter", "", "SQL `condition`")
	fs.StringVar(&f.action, "action", "", "SQL `statements` that change the copy: SET a = 1; REMOVE b")
	fs.StringArrayVar(&f.correlation, "match", nil, "`field=value` that must be equal: label, correlationId, to, …; may be repeated")
	fs.StringArrayVar(&f.properties, "property", nil, "`name=value` of a property that must be equal; may be repeated")
	return cmd
}

func ruleTable(rules []entity.Rule) *cli.Table {
	t := cli.NewTable("RULE", "TAKES", "CHANGES")
	for _, rule := range rules {
		t.Add(rule.Name, apply.DescribeFilter(rule.Filter), rule.Action.SQL)
	}
	return t
}

func (r rules) list() *cobra.Command {
	return &cobra.Command{
		Use: "list TOPIC SUBSCRIPTION", Short: "List the rules of a subscription", Args: cli.Exactly("TOPIC", "SUBSCRIPTION"),
		RunE: r.with(func(cmd *cobra.Command, a *cli.API, at string, _ []string) error {
			all, err := cli.ListAll[entity.Rule](cmd.Context(), a, at, nil)
			if err != nil {
				return err
			}
			if r.JSON {
				return cli.AnswerJSON(r.Out, all)
			}
			if len(all) == 0 {
				fmt.Fprintln(r.Err, "There are no rules: nothing is taken.")
				return nil
			}
			ruleTable(all).Print(r.Out)
			return nil
		}),
	}
}

func (r rules) show() *cobra.Command {
	return &cobra.Command{
		Use: "show TOPIC SUBSCRIPTION NAME", Short: "Show a rule", Args: cli.Exactly("TOPIC", "SUBSCRIPTION", "NAME"),
		RunE: r.with(func(cmd *cobra.Command, a *cli.API, at string, args []string) error {
			var rule entity.Rule
			if err := a.Do(cmd.Context(), http.MethodGet, at+cli.Path(args[0]), nil, &rule); err != nil {
				return err
			}
			if r.JSON {
				return cli.AnswerJSON(r.Out, rule)
			}
			ruleTable([]entity.Rule{rule}).Print(r.Out)
			return nil
		}),
	}
}

func (r rules) delete() *cobra.Command {
	return &cobra.Command{
		Use: "delete TOPIC SUBSCRIPTION NAME", Short: "Remove a rule", Args: cli.Exactly("TOPIC", "SUBSCRIPTION", "NAME"),
		RunE: r.with(func(cmd *cobra.Command, a *cli.API, at string, args []string) error {
			if err := a.Do(cmd.Context(), http.MethodDelete, at+cli.Path(args[0]), nil, nil); err != nil {
				return err
			}
			if !r.JSON {
				fmt.Fprintf(r.Out, "Deleted rule %s.\n", args[0])
			}
			return nil
		}),
	}
}
