// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/x509"
	"testing"
	"time"

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
