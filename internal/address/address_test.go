// SPDX-License-Identifier: Apache-2.0

package address

import (
	"strings"
	"testing"
)

func TestParseReadsBothForms(t *testing.T) {
	for text, want := range map[string]Address{
		" AMQP://me:se%3Acret@localhost/orders ": {
			Scheme: "amqp", URL: true, Name: "localhost", Path: "/orders", User: "me", Password: "se:cret", hostname: "localhost"},
		"wss://[::1]:9000": {Scheme: "wss", URL: true, Name: "[::1]:9000", hostname: "::1", port: "9000"},
		"endpoint=sb://h/; SharedAccessKeyName = n ;SharedAccessKey=a=b==;EntityPath=/q/;": {
			Scheme: "amqps", Name: "h", Entity: "q", KeyName: "n", Key: "a=b==", hostname: "h"},
		"Endpoint=sb://h:7;SharedAccessSignature=s;UseDevelopmentEmulator=1;TransportType=amqpwebsockets": {
			Scheme: "amqp", WebSocket: true, Name: "h:7", Signature: "s", hostname: "h", port: "7"},
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q\nread as %+v, %v\nwant    %+v", text, got, err, want)
		}
	}
}

func TestErrorsShowNoSecret(t *testing.T) {
	for _, text := range []string{
		"", "localhost", "amqp://u:hunter2@", "amqp://u:hunter2@h:port", "amqp://u:hunter2@%zz",
		"Endpoint=;SharedAccessKey=hunter2", "Endpoint=sb://h;hunter2", "SharedAccessKey=hunter2",
	} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q is read as %+v, want an error", text, got)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error shows the secret: %v", text, err)
		}
	}
}

func TestHostPortPrefersThePortOfTheAddress(t *testing.T) {
	for text, want := range map[string]string{"amqp://[::1]": "[::1]:5", "amqp://h:6": "h:6"} {
		if a, err := Parse(text); err != nil || a.HostPort("5") != want {
			t.Errorf("%s: %s, %v, want %s", text, a.HostPort("5"), err, want)
		}
	}
}
