// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/vfs"
)

func TestDevelopmentCertificate(t *testing.T) {
	fsys := vfs.NewMem()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	first, err := devCertificate(fsys, now)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := readFile(fsys, caFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
		if _, err := first.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool, CurrentTime: now}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	again, err := devCertificate(fsys, now.Add(24*time.Hour))
	if err != nil || !again.Leaf.Equal(first.Leaf) {
		t.Errorf("a day later there is another certificate, %v", err)
	}
	later, err := devCertificate(fsys, now.Add(certLife-time.Hour))
	if err != nil || later.Leaf.Equal(first.Leaf) {
		t.Errorf("a certificate about to end was kept, %v", err)
	}
}

// A client certificate takes the place of a key: its name is that of a rule.
func TestClientCertificate(t *testing.T) {
	ca, caKey, err := newCertificate(&x509.Certificate{
		Subject: pkix.Name{CommonName: "clients"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, time.Now(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	caPath := filepath.Join(t.TempDir(), "clients.pem")
	if err := os.WriteFile(caPath, encodePEM("CERTIFICATE", ca.Raw), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, func(c *Config) {
		c.TLS.ClientCAFile = caPath
		c.Security.Rules = entity.AuthorizationRules{{KeyName: "worker", Rights: []entity.Right{entity.Send, entity.Listen}, PrimaryKey: "unused"}}
	})
	client := func(name string) *tls.Config {
		leaf, key, err := newCertificate(&x509.Certificate{
			Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}, time.Now(), ca, caKey)
		if err != nil {
			t.Fatal(err)
		}
		cfg := r.tlsConfig()
		cfg.Certificates = []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}}
		return cfg
	}
	external := func() *amqp.ConnOptions { return &amqp.ConnOptions{SASLType: amqp.SASLTypeExternal("")} }
	r.roundTrip(tls.Client(r.dial(), client("worker")), external())
	if _, err := amqp.NewConn(r.ctx(), tls.Client(r.dial(), client("stranger")), external()); err == nil {
		t.Error("a certificate without a rule got in")
	}
	if _, err := amqp.NewConn(r.ctx(), tls.Client(r.dial(), r.tlsConfig()), external()); err == nil {
		t.Error("EXTERNAL without a certificate got in")
	}
}
