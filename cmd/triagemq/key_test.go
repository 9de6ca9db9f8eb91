// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/cli"
)

const (
	listening  = `(?m)listening on (\S+)$`
	connection = `(?m)^ +(?:primary +)?(Endpoint=sb://\S+)$`
)

// command runs a command in this process, which must succeed, and returns what it
// printed.
func command(t *testing.T, args ...string) string {
	t.Helper()
	code, out, err := try(t, args...)
	if code != 0 {
		t.Fatalf("%v: code %d: %s", args, code, err)
	}
	return out
}

func try(t *testing.T, args ...string) (code int, out, err string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// serveOn starts a broker on the data directory, without --dev.
func serveOn(t *testing.T, data string, more ...string) *process {
	t.Helper()
	return startProcess(t, append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, more...)...)
}

// The first start may fail, because the port is in use or the certificate is not where
// it should be, or be one with --dev, which needs no key.
// The root key is shown by the first start that works.
func TestRootKeyIsShownAfterAFailedStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, args := range map[string][]string{
		"port in use":    {"--listen", taken.Addr().String()},
		"no certificate": {"--tls-cert", "none.pem", "--tls-key", "none.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			if code := serveOn(t, data, args...).code(); code == 0 {
				t.Fatal("it started")
			}
			p := serveOn(t, data)
			p.wait(&p.out, "Created a root key")
			command(t, "queue", "list", "--connection-string", p.wait(&p.out, connection))
		})
	}
	t.Run("with --dev", func(t *testing.T) {
		data := t.TempDir()
		dev := serveOn(t, data, "--dev")
		dev.wait(&dev.out, "Development: ")
		if code := dev.stop(); code != 0 {
			t.Fatalf("code %d: %s", code, dev.err.String())
		}
		p := serveOn(t, data)
		p.wait(&p.out, "Created a root key")
		command(t, "queue", "list", "--connection-string", p.wait(&p.out, connection))
	})
}

// A start that has nothing new to show says where the keys are, and `key show` shows
// them, whether the broker runs or not.
func TestKeyShow(t *testing.T) {
	data := t.TempDir()
	code, _, complaint := try(t, "key", "show", "--data", data)
	if code != cli.ExitFailed || !strings.Contains(complaint, "no key was made yet") {
		t.Errorf("before the first start: code %d, %q", code, complaint)
	}
	p := serveOn(t, data)
	first := p.wait(&p.out, connection)
	p.stop()

	p = serveOn(t, data)
	address := p.wait(&p.out, listening)
	if hint := p.wait(&p.out, "`(triagemq key show --data .*)` shows them"); !strings.HasSuffix(hint, data) {
		t.Errorf("the hint is %q", hint)
	}
	_, port, _ := net.SplitHostPort(address)
	file := filepath.Join(t.TempDir(), "c.yaml")
	writeText(t, file, "data: "+data+"\nlisteners: ['localhost:"+port+"']\n")
	for _, args := range [][]string{{"--data", data}, {"--config", file}} {
		shown := command(t, append([]string{"key", "show"}, args...)...)
		if key := keyOf(first); !strings.Contains(shown, ";SharedAccessKey="+key+";") {
			t.Errorf("key show %v does not show %s:\n%s", args, key, shown)
		}
	}
	var connections []string
	for _, line := range strings.Split(command(t, "key", "show", "--data", data), "\n") { // it knows the port by itself
		if _, c, ok := strings.Cut(line, "Endpoint="); ok {
			connections = append(connections, "Endpoint="+c)
		}
	}
	if len(connections) != 2 {
		t.Fatalf("%d connection strings, want one for each key", len(connections))
	}
	for _, c := range connections {
		command(t, "queue", "list", "--connection-string", c)
	}
	p.stop()
	if shown := command(t, "key", "show", "--data", data, "--json"); !strings.Contains(shown, `"primaryKey": "`+keyOf(first)+`"`) {
		t.Errorf("as JSON, while the broker is stopped:\n%s", shown)
	}
}

// keyOf returns the key in a connection string.
func keyOf(connection string) string {
	_, key, _ := strings.Cut(connection, ";SharedAccessKey=")
	key, _, _ = strings.Cut(key, ";")
	return key
}

// withKey returns a connection string with another key.
func withKey(connection, key string) string {
	return strings.Replace(connection, keyOf(connection), key, 1)
}

// `key rotate` makes the primary key the secondary one and makes a new primary key.
// A broker that runs is told, and both keys are good until the next time; one that
// does not run has them when it starts.
func TestKeyRotate(t *testing.T) {
	data := t.TempDir()
	p := serveOn(t, data)
	first := p.wait(&p.out, connection)
	works := func(key string) bool {
		t.Helper()
		code, _, complaint := try(t, "queue", "list", "--connection-string", withKey(first, key))
		if code != 0 && !strings.Contains(complaint, "check the key") {
			t.Fatalf("code %d: %s", code, complaint)
		}
		return code == 0
	}
	rotate := func(args ...string) string {
		t.Helper()
		before := strings.Count(p.err.String(), "were read again")
		out := command(t, append([]string{"key", "rotate", "--data", data}, args...)...)
		if !strings.Contains(out, "was told") {
			t.Errorf("the broker was not told:\n%s", out)
		}
		p.wait(&p.err, strings.Repeat("(?s:.*)were read again", before+1))
		_, line, _ := strings.Cut(out, "Endpoint=")
		line, _, _ = strings.Cut(line, "\n")
		return keyOf(line)
	}
	one := keyOf(first)
	two := rotate()
	if one == two || !works(one) || !works(two) {
		t.Errorf("after a rotation: the old key works %v, the new one %v, want both", works(one), works(two))
	}
	three := rotate("RootManageSharedAccessKey")
	if works(one) || !works(two) || !works(three) {
		t.Errorf("after another: %v %v %v, want all but the first", works(one), works(two), works(three))
	}
	four := rotate("--both")
	if works(two) || works(three) || !works(four) {
		t.Errorf("after both were changed: %v %v %v, want the last alone", works(two), works(three), works(four))
	}
	p.stop()

	out := command(t, "key", "rotate", "--data", data)
	if !strings.Contains(out, "No broker is running") {
		t.Errorf("of a broker that is stopped:\n%s", out)
	}
	p = serveOn(t, data)
	address := p.wait(&p.out, listening)
	first = strings.Replace(first, first[len("Endpoint=sb://"):strings.Index(first, ";")], address, 1)
	_, line, _ := strings.Cut(out, "Endpoint=")
	line, _, _ = strings.Cut(line, "\n")
	if five := keyOf(line); !works(four) || !works(five) {
		t.Errorf("after a start: %v %v, want both", works(four), works(five))
	}
}

// A rule of the configuration is changed there: rotating it elsewhere would do nothing.
func TestKeyRotateLeavesTheConfigurationAlone(t *testing.T) {
	data := t.TempDir()
	p := serveOn(t, data)
	p.wait(&p.out, connection)
	p.stop()
	file := filepath.Join(t.TempDir(), "c.yaml")
	writeText(t, file, "data: "+data+"\nsecurity: {rules: [{name: shop, rights: [Send], primaryKey: 0123456789abcdef}]}\n")
	for _, tt := range []struct{ name, want string }{
		{"shop", "is in c.yaml"},
		{"none", "there is RootManageSharedAccessKey"},
	} {
		code, _, complaint := try(t, "key", "rotate", tt.name, "--config", file)
		if code != cli.ExitFailed || !strings.Contains(complaint, tt.want) {
			t.Errorf("rotate %s: code %d, %q, want %q", tt.name, code, complaint, tt.want)
		}
	}
	if shown := command(t, "key", "show", "--config", file); !strings.Contains(shown, "shop (Send), in c.yaml") {
		t.Errorf("key show leaves the rule of the file out:\n%s", shown)
	}
}
