// SPDX-License-Identifier: Apache-2.0

// Package accesstest has what the rights matrices of AMQP and HTTP share: the
// callers, with their keys and tokens.
package accesstest

import (
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/entity"
)

// The names of the entities that are tried.
const (
	// Other is a queue whose name is a prefix of the names that are tested.
	Other = "orders"
	// elsewhere is the queue that a token is for which does not fit.
	elsewhere = "elsewhere"
)

// Credential is a column of a matrix: a caller.
type Credential struct {
	Name    string
	Of      Owner
	Rights  access.Rights
	Token   func(rule access.Rule, target string) string // made for a target
	Revoked bool                                         // the key is removed before anything is tried
	Void    bool                                         // the credential grants nothing
	Login   bool                                         // by name and key instead of tokens; not printed, as it has to be the same
}

// Owner says whose key a credential is.
type Owner int

// The owners.
const (
	Nobody    Owner = iota
	Namespace       // the key is one of the namespace
	Own             // of the entity that is tried
	Another         // of Other
)

// Credentials returns the columns, with tokens for resources below base, such as
// sb://ns.example/.
func Credentials(base string) []Credential {
	good := func(rule access.Rule, target string) string {
		return access.SignToken(rule, base+target, time.Now().Add(time.Hour))
	}
	manage := func(name string, token func(rule access.Rule, target string) string) Credential {
		return Credential{Name: name, Of: Namespace, Rights: access.Manage, Void: true, Token: token}
	}
	all := []Credential{
		{Name: "none", Void: true},
		{Name: "Send", Of: Namespace, Rights: access.Send},
		{Name: "Listen", Of: Namespace, Rights: access.Listen},
		{Name: "Manage", Of: Namespace, Rights: access.Manage},
		{Name: "own Send", Of: Own, Rights: access.Send},
		{Name: "own Listen", Of: Own, Rights: access.Listen},
		{Name: "own Manage", Of: Own, Rights: access.Manage},
		{Name: "other's Manage", Of: Another, Rights: access.Manage},
		manage("expired", func(rule access.Rule, target string) string {
			return access.SignToken(rule, base+target, time.Now().Add(-time.Second))
		}),
		{Name: "revoked", Of: Namespace, Rights: access.Manage, Void: true, Revoked: true},
		manage("forged", func(rule access.Rule, target string) string {
			rule.PrimaryKey += "?"
			return good(rule, target)
		}),
		manage("altered", func(rule access.Rule, target string) string {
			return strings.Replace(good(rule, elsewhere), elsewhere, strings.ReplaceAll(target, "/", "%2f"), 1)
		}),
		manage("elsewhere", func(rule access.Rule, target string) string { return good(rule, elsewhere) }),
		{Name: "login: Send", Of: Namespace, Rights: access.Send, Login: true},
		{Name: "login: Listen", Of: Namespace, Rights: access.Listen, Login: true},
		{Name: "login: Manage", Of: Namespace, Rights: access.Manage, Login: true},
		{Name: "login: revoked", Of: Namespace, Rights: access.Manage, Login: true, Void: true, Revoked: true},
	}
	for i := range all {
		if all[i].Token == nil {
			all[i].Token = good
		}
	}
	return all
}

// Key is the rule of an entity for a right; the entity "" is the namespace.
func Key(of string, r access.Rights) access.Rule {
	return access.Rule{Name: r.String(), Rights: r, PrimaryKey: r.String() + " of " + of}
}

// Rules are the keys of an entity, one for each right.
func Rules(of string) entity.AuthorizationRules {
	var rules entity.AuthorizationRules
	for _, r := range []access.Rights{access.Send, access.Listen, access.Manage} {
		k := Key(of, r)
		rules = append(rules, entity.AuthorizationRule{KeyName: k.Name, Rights: []entity.Right{entity.Right(k.Name)}, PrimaryKey: k.PrimaryKey})
	}
	return rules
}

// Heading is the first two lines of a matrix in Markdown, of which the first column has a
// title. Logins have no columns.
func Heading(title, base string) string {
	names, rule := "| "+title+" | needs |", "| --- | --- |"
	for _, c := range Credentials(base) {
		if !c.Login {
			names += " " + c.Name + " |"
			rule += " :-: |"
		}
	}
	return names + "\n" + rule + "\n"
}
