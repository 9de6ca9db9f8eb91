// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"strings"
	"testing"
)

func TestAddressIsRead(t *testing.T) {
	const key = "SharedAccessKeyName=Root;SharedAccessKey=a/b+c=="
	for _, c := range []struct {
		address string
		want    target
	}{
		{"Endpoint=sb://ns.servicebus.windows.net/;" + key,
			target{scheme: "amqps", host: "ns.servicebus.windows.net:5671", name: "ns.servicebus.windows.net", keyName: "Root", key: "a/b+c=="}},
		{"endpoint=sb://localhost;" + key + ";UseDevelopmentEmulator=true",
			target{scheme: "amqp", host: "localhost:5672", name: "localhost", keyName: "Root", key: "a/b+c=="}},
		{" Endpoint=sb://localhost:7000 ; " + key + ";EntityPath=/orders/;UseDevelopmentEmulator=1;",
			target{scheme: "amqp", host: "localhost:7000", name: "localhost:7000", entity: "orders", keyName: "Root", key: "a/b+c=="}},
		{"Endpoint=sb://h;SharedAccessSignature=SharedAccessSignature sr=x&sig=y%3D&se=1&skn=n;" + key,
			target{scheme: "amqps", host: "h:5671", name: "h", signature: "SharedAccessSignature sr=x&sig=y%3D&se=1&skn=n"}},
		{"Endpoint=sb://h;" + key + ";TransportType=AmqpWebSockets",
			target{scheme: "wss", host: "h:443", name: "h", keyName: "Root", key: "a/b+c=="}},
		{"amqp://Root:se%3Acret@localhost/orders",
			target{scheme: "amqp", host: "localhost:5672", name: "localhost", entity: "orders", user: "Root", pass: "se:cret"}},
		{"amqps://[::1]:9000", target{scheme: "amqps", host: "[::1]:9000", name: "[::1]:9000"}},
		{"wss://broker.example", target{scheme: "wss", host: "broker.example:443", name: "broker.example"}},
	} {
		c.want.path = webSocketPath
		if got, err := parseAddress(c.address); err != nil || got != c.want {
			t.Errorf("%s\nread as %+v, %v\nwant    %+v", c.address, got, err, c.want)
		}
	}
}

func TestUnreadableAddressIsRefusedWithoutItsSecrets(t *testing.T) {
	for _, address := range []string{
		"", "localhost", "Endpoint=sb://;SharedAccessKeyName=n;SharedAccessKey=hunter2",
		"SharedAccessKeyName=n;SharedAccessKey=hunter2", "Endpoint=sb://h;SharedAccessKey=hunter2",
		"Endpoint=sb://h;SharedAccessKeyName=n", "Endpoint=sb://h", "http://u:hunter2@h", "amqp://u:hunter2@",
		"amqp://u:hunter2@h:port", "Endpoint=sb://h;hunter2",
	} {
		_, err := parseAddress(address)
		if !errors.Is(err, ErrAddress) {
			t.Errorf("%q: %v, want %v", address, err, ErrAddress)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error shows the secret: %v", address, err)
		}
	}
}

func TestAudienceFollowsTheScheme(t *testing.T) {
	for scheme, want := range map[string]string{
		"amqp": "amqp://h:1/q", "ws": "amqp://h:1/q", "amqps": "amqps://h:1/q", "wss": "amqps://h:1/q",
	} {
		if got := (target{scheme: scheme, name: "h:1"}).audience("q"); got != want {
			t.Errorf("%s: audience %s, want %s", scheme, got, want)
		}
	}
}
