// SPDX-License-Identifier: Apache-2.0

package access

import (
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/sas"
)

// token is a shared access signature and the path that its resource names.
type token struct {
	sas.Token
	scope string
}

func parseToken(text string) (token, error) {
	if len(text) > limits.Token {
		return token{}, ErrMalformed
	}
	parsed, err := sas.Parse(text)
	if err != nil {
		return token{}, ErrMalformed
	}
	scope, err := scopeOf(parsed.Resource)
	if err != nil {
		return token{}, err
	}
	return token{parsed, strings.Clone(scope)}, nil // a grant must not keep what the token came in
}

// RuleOf returns the name of the rule that a token says it was signed with, as well as
// it can be read; empty if it cannot. It proves nothing.
func RuleOf(text string) string { return sas.KeyName(text) }

// SignToken makes a token for resource that ends at expires, as a client would.
func SignToken(rule Rule, resource string, expires time.Time) string {
	return sas.Sign(resource, rule.Name, rule.PrimaryKey, expires)
}
