// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/server"
)

func noEnvironment(string) (string, bool) { return "", false }

func TestServeSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("data: from-file\nqueues:\n- name: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) {
		if name == "TRIAGEMQ_DATA" {
			return "from-environment", true
		}
		return "", false
	}
	tests := []struct {
		name   string
		flags  serveFlags
		env    func(string) (string, bool)
		data   string
		queues []string
	}{
		{"nothing", serveFlags{}, noEnvironment, "triagemq-data", nil},
		{"development", serveFlags{Config: config.Config{Security: config.Security{Dev: true}}}, noEnvironment, "triagemq-data", []string{"orders", "demo"}},
		{"file", serveFlags{file: file}, noEnvironment, "from-file", []string{"a"}},
		{"development with a file", serveFlags{file: file, Config: config.Config{Security: config.Security{Dev: true}}}, noEnvironment, "from-file", []string{"a"}},
		{"environment", serveFlags{file: file}, env, "from-environment", []string{"a"}},
		{"flag", serveFlags{file: file, Config: config.Config{Data: "from-flag"}}, env, "from-flag", []string{"a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := tt.flags.settings(tt.env)
			if err != nil {
				t.Fatal(err)
			}
			var queues []string
			for _, q := range cfg.Queues {
				queues = append(queues, q.Name)
			}
			if cfg.Data != tt.data || strings.Join(queues, " ") != strings.Join(tt.queues, " ") {
				t.Errorf("data %q, queues %v, want %q, %v", cfg.Data, queues, tt.data, tt.queues)
			}
		})
	}
}

func TestPrintReady(t *testing.T) {
	var w bytes.Buffer
	printReady(&w, config.Config{Data: "d"}, server.Ready{
		Addresses: []string{"127.0.0.1:5672"},
		NewKey:    &access.Rule{Name: "root", PrimaryKey: "key"},
	})
	want := `TriageMQ is ready. Data in d
  listening on 127.0.0.1:5672

Created a root key, stored in ` + filepath.Join("d", "namespace.json") + "; `triagemq key show --data d` prints it again" + `
  Endpoint=sb://127.0.0.1;SharedAccessKeyName=root;SharedAccessKey=key;UseDevelopmentEmulator=true
`
	if w.String() != want {
		t.Errorf("got\n%s\nwant\n%s", w.String(), want)
	}

	w.Reset()
	dev := config.Config{Data: "d", Security: config.Security{Dev: true}}
	printReady(&w, dev, server.Ready{Addresses: []string{"127.0.0.1:7000"}, TLS: true, CA: "tls/ca.pem"})
	for _, part := range []string{"sb://127.0.0.1:7000;", "SAS_KEY_VALUE", filepath.Join("d", "tls", "ca.pem")} {
		if !strings.Contains(w.String(), part) {
			t.Errorf("development: %q is missing in\n%s", part, w.String())
		}
	}

	w.Reset()
	dev.Security.AllowRemote = true
	printReady(&w, dev, server.Ready{Addresses: []string{"0.0.0.0:7000"}, TLS: true, CA: "tls/ca.pem", NewKey: &access.Rule{Name: "root", PrimaryKey: "secret"}})
	if text := w.String(); strings.Contains(text, "SAS_KEY_VALUE") || !strings.Contains(text, "SharedAccessKey=secret;UseDevelopmentEmulator=true") {
		t.Errorf("development for other machines: want the real key alone in\n%s", text)
	}
}

// A connection string names what is listened on, as a client on this machine reaches it.
func TestEndpointIsListenedOn(t *testing.T) {
	for _, tt := range []struct {
		addresses []string
		encrypted bool
		want      string
	}{
		{nil, false, "localhost"},
		{[]string{"127.0.0.1:5672", "[::1]:5672", "127.0.0.1:5300"}, false, "localhost"},
		{[]string{"127.0.0.1:5672"}, false, "127.0.0.1"},
		{[]string{"[::1]:5672"}, false, "[::1]"},
		{[]string{"127.0.0.1:15672"}, false, "127.0.0.1:15672"},
		{[]string{"[::1]:15672"}, false, "[::1]:15672"},
		{[]string{"127.0.0.1:15672", "[::1]:15674"}, false, "127.0.0.1:15672"},
		{[]string{"localhost:15672"}, false, "localhost:15672"},
		{[]string{"0.0.0.0:5672"}, false, "localhost"},
		{[]string{"[::]:15672"}, false, "localhost:15672"},
		{[]string{"192.0.2.7:5672"}, false, "192.0.2.7"},
		{[]string{"broker.example:5671"}, true, "broker.example"},
		{[]string{"broker.example:5672", "broker.example:5671"}, true, "broker.example"},
		{[]string{"broker.example:5672"}, true, "broker.example:5672"},
	} {
		if got := endpointOf(tt.addresses, tt.encrypted); got != tt.want {
			t.Errorf("%v, encrypted %v: got %s, want %s", tt.addresses, tt.encrypted, got, tt.want)
		}
	}
}

// Clients assume port 5672, or 5671 with TLS, if a connection string names none.
func TestConnectionStringsNameThePort(t *testing.T) {
	usual := []string{"127.0.0.1:5672", "[::1]:5672", "127.0.0.1:5300"}
	for _, tt := range []struct {
		addresses []string
		encrypted bool
		want      string
	}{
		{usual, false, "localhost"},
		{usual, true, "localhost:5672"},
		{[]string{"0.0.0.0:5300", "0.0.0.0:5671"}, true, "localhost"},
		{[]string{"0.0.0.0:5671"}, false, "localhost:5671"},
		{nil, true, "localhost"},
	} {
		if got := endpointOf(tt.addresses, tt.encrypted); got != tt.want {
			t.Errorf("listening on %v, encrypted %t: %s, want %s", tt.addresses, tt.encrypted, got, tt.want)
		}
	}
}
