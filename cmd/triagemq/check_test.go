// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/cli"
)

// Keys that stand in our own documents, or that anybody could guess, are faults of a
// configuration, and the broker does not start with them.
func TestWeakKeysAreRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "c.yaml")
	writeText(t, file, `security:
  rules:
    - {name: doc, rights: [Send], primaryKey: "…", secondaryKey: "<your-key-goes-here>"}
    - {name: short, rights: [Send], primaryKey: fifteen-letters}
    - {name: fine, rights: [Send], primaryKey: sixteen-letters!}
queues:
  - name: q
    authorizationRules:
      - {keyName: a, rights: [Listen], primaryKey: ChangeMe-ChangeMe-ChangeMe}
      - {keyName: b, rights: [Listen], primaryKey: sixteen-letters!, secondaryKey: tiny}
`)
	for _, args := range [][]string{
		{"config", "check", file},
		{"serve", "--config", file, "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0"},
	} {
		p := startProcess(t, args...)
		if code := p.code(); code == 0 {
			t.Errorf("%v: code 0", args)
		}
		for _, want := range []string{
			"c.yaml:3:47: security.rules[0].primaryKey: ",
			"c.yaml:3:66: security.rules[0].secondaryKey: ",
			"c.yaml:9:52: queues[0].authorizationRules[0].primaryKey: ",
		} {
			if !strings.Contains(p.err.String(), want) {
				t.Errorf("%v: %q is missing in\n%s", args, want, p.err.String())
			}
		}
	}
	writeText(t, file, `security:
  rules:
    - {name: short, rights: [Send], primaryKey: fifteen-letters}
    - {name: fine, rights: [Send], primaryKey: sixteen-letters!}
`)
	for _, tt := range []struct {
		code int
		args []string
	}{
		{cli.ExitFailed, []string{"config", "check", file}},
		{cli.ExitUsage, []string{"serve", "--config", file, "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0"}},
		{cli.ExitUsage, []string{"serve", "--dev", "--allow-remote", "--config", file, "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0"}},
	} {
		p := startProcess(t, tt.args...)
		const want = "c.yaml:3:49: security.rules[0].primaryKey: it has 15 characters"
		if code := p.code(); code != tt.code || !strings.Contains(p.err.String(), want) {
			t.Errorf("%v: code %d, want %d and %q in\n%s", tt.args, code, tt.code, want, p.err.String())
		}
	}
	dev := serveOn(t, filepath.Join(dir, "data"), "--dev", "--config", file)
	dev.wait(&dev.out, "is ready")
	writeText(t, file, "security: {dev: true, rules: [{name: short, rights: [Send], primaryKey: short}]}")
	command(t, "config", "check", file)
}

// Certificates that are missing, cannot be read or do not fit their key are faults of a
// configuration, and are found before the broker opens its store.
func TestCertificatesAreChecked(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	certFile, keyFile := writeCertificate(t, dir, 1)
	_, otherKey := writeCertificate(t, other, 2)
	nonsense := filepath.Join(dir, "nonsense.pem")
	writeText(t, nonsense, "nonsense")
	missing := filepath.Join(dir, "missing.pem")
	for name, tt := range map[string]struct{ cert, key, ca, want string }{
		"fine":                       {certFile, keyFile, certFile, ""},
		"no certificate":             {missing, keyFile, certFile, "c.yaml:2:13: tls.certFile: "},
		"no key":                     {certFile, missing, certFile, "c.yaml:3:12: tls.keyFile: "},
		"no CA":                      {certFile, keyFile, missing, "c.yaml:4:17: tls.clientCAFile: "},
		"a CA that is none":          {certFile, keyFile, nonsense, "c.yaml:4:17: tls.clientCAFile: "},
		"a certificate that is none": {nonsense, keyFile, certFile, "c.yaml:2:13: tls.certFile: "},
		"another's key":              {certFile, otherKey, certFile, "c.yaml:2:13: tls.certFile: "},
	} {
		t.Run(name, func(t *testing.T) {
			file, data := filepath.Join(t.TempDir(), "c.yaml"), filepath.Join(t.TempDir(), "data")
			writeText(t, file, "tls:\n  certFile: "+tt.cert+"\n  keyFile: "+tt.key+"\n  clientCAFile: "+tt.ca+"\n")
			p := startProcess(t, "config", "check", file)
			code := p.code()
			if tt.want == "" {
				if code != 0 {
					t.Errorf("code %d\n%s", code, p.err.String())
				}
				return
			}
			if code != cli.ExitFailed || !strings.Contains(p.err.String(), tt.want) {
				t.Errorf("code %d, want %d and %q in\n%s", code, cli.ExitFailed, tt.want, p.err.String())
			}
			p = startProcess(t, "serve", "--config", file, "--data", data, "--listen", "127.0.0.1:0")
			if code := p.code(); code != cli.ExitUsage || !strings.Contains(p.err.String(), tt.want) {
				t.Errorf("serve: code %d, want %d and %q in\n%s", code, cli.ExitUsage, tt.want, p.err.String())
			}
		})
	}
}
