// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/limits"
)

const tokenPrefix = "SharedAccessSignature "

// token is a shared access signature taken apart. resource stays as it was
// written, because that is what was signed: clients differ in how they escape.
type token struct {
	resource  string // sr, escaped
	scope     string // the path in it
	signature []byte
	expires   time.Time
	expiry    string // se, as it was written
	rule      string // skn
}

func parseToken(text string) (token, error) {
	fields, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok || len(text) > limits.Token {
		return token{}, ErrMalformed
	}
	var t token
	for field := range strings.SplitSeq(fields, "&") {
		key, value, _ := strings.Cut(field, "=")
		var err error
		switch key {
		case "sr":
			t.resource = value
			t.scope, err = scopeOf(value)
		case "sig":
			t.signature, err = unescapeSignature(value)
		case "se":
			t.expiry = value
			t.expires, err = unixSeconds(value)
		case "skn":
			t.rule, err = url.QueryUnescape(value)
		}
		if err != nil {
			return token{}, ErrMalformed
		}
	}
	if t.resource == "" || len(t.signature) == 0 || t.expiry == "" || t.rule == "" {
		return token{}, ErrMalformed
	}
	return t, nil
}

// RuleOf returns the name of the rule that a token says it was signed with, as well as
// it can be read; empty if it cannot. It proves nothing.
func RuleOf(text string) string {
	fields, _ := strings.CutPrefix(text, tokenPrefix)
	for field := range strings.SplitSeq(fields, "&") {
		if value, ok := strings.CutPrefix(field, "skn="); ok {
			rule, _ := url.QueryUnescape(value)
			return rule
		}
	}
	return ""
}

// unescapeSignature undoes the escaping, but leaves alone what a client did not
// escape: '+' is base64 and never a space here.
func unescapeSignature(s string) ([]byte, error) {
	text, err := url.PathUnescape(s)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}

// unixSeconds reads an expiry. Some clients write fractions of a second.
func unixSeconds(s string) (time.Time, error) {
	whole, _, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return time.Time{}, ErrMalformed
	}
	return time.Unix(n, 0).UTC(), nil
}

// signedWith reports whether key made the signature, in a time that does not
// depend on how much of it is right.
func (t token) signedWith(key string) bool {
	if key == "" {
		return false
	}
	return hmac.Equal(sign(key, t.resource, t.expiry), t.signature)
}

func sign(key, resource, expiry string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(resource))
	mac.Write([]byte{'\n'})
	mac.Write([]byte(expiry))
	return mac.Sum(nil)
}

// SignToken makes a token for resource that ends at expires, as a client would.
func SignToken(rule Rule, resource string, expires time.Time) string {
	sr := strings.ToLower(url.QueryEscape(resource))
	se := strconv.FormatInt(expires.Unix(), 10)
	sig := url.QueryEscape(base64.StdEncoding.EncodeToString(sign(rule.PrimaryKey, sr, se)))
	return tokenPrefix + "sr=" + sr + "&sig=" + sig + "&se=" + se + "&skn=" + url.QueryEscape(rule.Name)
}
