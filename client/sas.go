// SPDX-License-Identifier: Apache-2.0

package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// tokenLife is how long a token that we make is good, and tokenRefresh when it
// is replaced: early enough that a refresh may fail a few times.
const (
	tokenLife    = time.Hour
	tokenRefresh = tokenLife / 2
)

// token returns a shared access signature for the audience and when it expires.
// A ready-made one has an expiry that only its maker knows: zero.
func (t target) token(audience string, now time.Time) (token string, expires time.Time) {
	if t.signature != "" {
		return t.signature, time.Time{}
	}
	expires = now.Add(tokenLife)
	return sign(audience, t.keyName, t.key, expires), expires
}

// sign makes the text of a shared access signature. The signature covers the
// resource exactly as it is written into the token.
func sign(audience, keyName, key string, expires time.Time) string {
	resource := strings.ToLower(url.QueryEscape(audience))
	until := strconv.FormatInt(expires.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(resource + "\n" + until))
	signature := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return "SharedAccessSignature sr=" + resource +
		"&sig=" + url.QueryEscape(signature) +
		"&se=" + until +
		"&skn=" + url.QueryEscape(keyName)
}
