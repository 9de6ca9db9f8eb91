// SPDX-License-Identifier: Apache-2.0

package sas_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/sas"
)

// The expected token was made with the algorithm of the Service Bus
// documentation by other means (openssl).
func TestTokenIsSigned(t *testing.T) {
	got := sas.Sign("amqp://localhost/Orders", "Root", "secret", time.Unix(1700000000, 0))
	want := "SharedAccessSignature sr=amqp%3a%2f%2flocalhost%2forders&sig=SyjAu9eomzjbCauftxoToG1mlBwXXPDV4drhZ1tDBIU%3D&se=1700000000&skn=Root"
	if got != want {
		t.Errorf("token %s\nwant  %s", got, want)
	}
}

func TestParseReadsWhatSignWrote(t *testing.T) {
	expires := time.Unix(1700000000, 0).UTC()
	text := sas.Sign("sb://host/a b", "key & name", "secret", expires)
	token, err := sas.Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	if token.Resource != "sb%3a%2f%2fhost%2fa+b" || token.KeyName != "key & name" || !token.Expires.Equal(expires) {
		t.Errorf("Parse(%q) = %+v", text, token)
	}
	if got := sas.KeyName(text); got != token.KeyName {
		t.Errorf("KeyName(%q) = %q, want %q", text, got, token.KeyName)
	}
	if !token.SignedWith("secret") || token.SignedWith("Secret") || token.SignedWith("") {
		t.Error("the signature fits another key, or not its own")
	}
	moved, err := sas.Parse(strings.Replace(text, "host", "hosts", 1))
	if err != nil || moved.SignedWith("secret") {
		t.Errorf("with another resource: %v, or the signature still fits", err)
	}
}

func TestParseRefusesWhatIsNoToken(t *testing.T) {
	good := sas.Sign("sb://host/q", "Root", "secret", time.Unix(1700000000, 0))
	for _, text := range []string{
		"", "Bearer x", sas.Scheme, sas.Scheme + " ", strings.Replace(good, "sr=", "xx=", 1), strings.Replace(good, "&se=", "&se=x", 1),
		strings.Replace(good, "&skn=", "&skn=%zz", 1), strings.Replace(good, "&sig=", "&sig=!", 1),
	} {
		if _, err := sas.Parse(text); !errors.Is(err, sas.ErrMalformed) {
			t.Errorf("Parse(%q): %v, want %v", text, err, sas.ErrMalformed)
		}
	}
}
