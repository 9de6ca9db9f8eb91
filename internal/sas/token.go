// SPDX-License-Identifier: Apache-2.0

package sas

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Scheme is the word that a token begins with.
const Scheme = "SharedAccessSignature"

// ErrMalformed means that a text is not a shared access signature.
var ErrMalformed = errors.New("sas: malformed token")

// Token is a shared access signature taken apart.
type Token struct {
	Resource  string // sr, escaped as it was written
	KeyName   string // skn
	Expires   time.Time
	expiry    string // se, as it was written
	signature []byte
}

// Sign makes a token for a resource.
func Sign(resource, keyName, key string, expires time.Time) string {
	sr := strings.ToLower(url.QueryEscape(resource))
	se := strconv.FormatInt(expires.Unix(), 10)
	sig := base64.StdEncoding.EncodeToString(signature(key, sr, se))
	return Scheme + " sr=" + sr + "&sig=" + url.QueryEscape(sig) + "&se=" + se + "&skn=" + url.QueryEscape(keyName)
}

// Parse takes a token apart; ErrMalformed. It does not look at the signature.
func Parse(text string) (Token, error) {
	fields, ok := strings.CutPrefix(text, Scheme+" ")
	if !ok {
		return Token{}, ErrMalformed
	}
	var t Token
	for field := range strings.SplitSeq(fields, "&") {
		key, value, _ := strings.Cut(field, "=")
		var err error
		switch key {
		case "sr":
			t.Resource = value
		case "sig":
			t.signature, err = unescapeSignature(value)
		case "se":
			t.expiry = value
			t.Expires, err = unixSeconds(value)
		case "skn":
			t.KeyName, err = url.QueryUnescape(value)
		}
		if err != nil {
			return Token{}, ErrMalformed
		}
	}
	if t.Resource == "" || len(t.signature) == 0 || t.expiry == "" || t.KeyName == "" {
		return Token{}, ErrMalformed
	}
	return t, nil
}

// KeyName returns the name of the key that a text says it was signed with, if that
// can be read. It proves nothing.
func KeyName(text string) string {
	fields, _ := strings.CutPrefix(text, Scheme+" ")
	for field := range strings.SplitSeq(fields, "&") {
		if value, ok := strings.CutPrefix(field, "skn="); ok {
			name, _ := url.QueryUnescape(value)
			return name
		}
	}
	return ""
}

// SignedWith reports whether key made the signature. An empty key makes none. The
// time it takes does not depend on how much of the signature is right.
func (t Token) SignedWith(key string) bool {
	return key != "" && hmac.Equal(signature(key, t.Resource, t.expiry), t.signature)
}

func signature(key, resource, expiry string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(resource))
	mac.Write([]byte{'\n'})
	mac.Write([]byte(expiry))
	return mac.Sum(nil)
}

// unescapeSignature undoes the escaping. Some clients do not escape '+', which in
// base64 never means a space.
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
