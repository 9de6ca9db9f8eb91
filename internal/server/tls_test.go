// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/server/credentials"
)

// A port that the system chooses is another one at each start. Clients that trust the CA
// must not have to trust another one each time.
func TestDevelopmentCertificateOutlivesPortsOfTheSystem(t *testing.T) {
	r := run(t, nil)
	first, err := credentials.ReadFile(r.fs, credentials.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	again := run(t, func(c *Config) { c.FS = r.fs })
	if got, err := credentials.ReadFile(r.fs, credentials.CAFile); err != nil || string(got) != string(first) {
		t.Errorf("started again, from %s to %s, it has another CA, %v", r.addr, again.addr, err)
	}
}

// A client certificate takes the place of a key: its name is that of a rule.
func TestClientCertificate(t *testing.T) {
	ca, caKey := newCertificate(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "clients"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	caPath := filepath.Join(t.TempDir(), "clients.pem")
	if err := os.WriteFile(caPath, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, func(c *Config) {
		c.TLS.ClientCAFile = caPath
		c.Security.Rules = entity.AuthorizationRules{{KeyName: "worker", Rights: []entity.Right{entity.Send, entity.Listen}, PrimaryKey: "unused"}}
	})
	client := func(name string) *tls.Config {
		leaf, key := newCertificate(t, &x509.Certificate{
			Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}, ca, caKey)
		cfg := r.tlsConfig()
		cfg.Certificates = []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}}
		return cfg
	}
	external := func() *amqp.ConnOptions { return &amqp.ConnOptions{SASLType: amqp.SASLTypeExternal("")} }
	r.roundTrip(tls.Client(r.dial(), client("worker")), external())
	if _, err := amqp.NewConn(r.ctx(), tls.Client(r.dial(), client("outsider")), external()); err == nil {
		t.Error("a certificate without a rule got in")
	}
	if _, err := amqp.NewConn(r.ctx(), tls.Client(r.dial(), r.tlsConfig()), external()); err == nil {
		t.Error("EXTERNAL without a certificate got in")
	}
}

// newCertificate completes a template and signs it with the parent, or with itself.
func newCertificate(t *testing.T, c, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent, parentKey = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}
