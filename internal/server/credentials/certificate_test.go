// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/x509"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/vfs"
)

func TestDevelopmentCertificate(t *testing.T) {
	fsys := vfs.NewMem()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	first, err := DevCertificate(fsys, nil, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := ReadFile(fsys, CAFile)
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

	again, err := DevCertificate(fsys, nil, nil, now.Add(24*time.Hour))
	if err != nil || !again.Leaf.Equal(first.Leaf) {
		t.Errorf("a day later there is another certificate, %v", err)
	}
	later, err := DevCertificate(fsys, nil, nil, now.Add(certLife-time.Hour))
	if err != nil || later.Leaf.Equal(first.Leaf) {
		t.Errorf("a certificate about to end was kept, %v", err)
	}
}

// The Go SDK verifies a certificate against host and port.
func TestDevelopmentCertificateNamesThePorts(t *testing.T) {
	fsys := vfs.NewMem()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	made := func(ports ...string) *x509.Certificate {
		cert, err := DevCertificate(fsys, ports, nil, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range ports {
			for _, host := range []string{"localhost", "127.0.0.1"} {
				if err := cert.Leaf.VerifyHostname(host + ":" + port); err != nil {
					t.Error(err)
				}
			}
		}
		return cert.Leaf
	}
	first := made("5671")
	both := made("5671", "9999")
	if both.Equal(first) {
		t.Error("a new port makes no new certificate")
	}
	if again := made("5671"); !again.Equal(both) {
		t.Error("a certificate that is for an old port as well was not kept")
	}
}

// A certificate names the ports of earlier starts, but does not grow without limit.
func TestDevelopmentCertificateNamesFewOldPorts(t *testing.T) {
	fsys := vfs.NewMem()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for port := range 300 {
		cert, err := DevCertificate(fsys, []string{strconv.Itoa(10000 + port)}, nil, now)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(cert.Leaf.DNSNames); n > 2*maxOldNames {
			t.Fatalf("after %d ports it has %d names", port, n)
		}
	}
}

// The certificate is several files, and a crash
// while they are renewed must not leave a set that the next start cannot use.
func TestCrashWhileTheCertificateIsRenewed(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later := now.Add(certLife - time.Hour)
	for n := 1; ; n++ {
		disk := vfs.NewMem()
		if _, err := DevCertificate(disk, nil, nil, now); err != nil {
			t.Fatal(err)
		}
		// Everything from the nth call on fails, as it would for a process that
		// is not there any more.
		power, calls := vfs.NewFault(disk), 0
		power.Before(func(op vfs.Op, _ string) error {
			if op == vfs.OpRead || op == vfs.OpOpen {
				return nil
			}
			if calls++; calls >= n {
				return errors.New("power failure")
			}
			return nil
		})
		_, err := DevCertificate(power, nil, nil, later)
		if calls < n {
			if err != nil || n < 10 {
				t.Fatalf("renewal makes %d calls that write: %v", calls, err)
			}
			return
		}
		for seed := range uint64(8) {
			after := disk.CrashClone(seed)
			cert, err := DevCertificate(after, nil, nil, later)
			if err != nil {
				t.Fatalf("start after a crash at call %d: %v", n, err)
			}
			pem, err := ReadFile(after, CAFile)
			if err != nil {
				t.Fatal(err)
			}
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(pem)
			if _, err := cert.Leaf.Verify(x509.VerifyOptions{DNSName: "localhost", Roots: pool, CurrentTime: later}); err != nil {
				t.Errorf("after a crash at call %d clients that trust %s refuse the certificate: %v", n, CAFile, err)
			}
		}
	}
}

// A certificate that cannot be read is not replaced: the disk is to blame.
func TestUnreadableCertificateIsKept(t *testing.T) {
	disk := vfs.NewMem()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, err := DevCertificate(disk, nil, nil, now); err != nil {
		t.Fatal(err)
	}
	broken, input := vfs.NewFault(disk), errors.New("input/output error")
	broken.Before(func(op vfs.Op, _ string) error {
		if op == vfs.OpRead {
			return input
		}
		return nil
	})
	if _, err := DevCertificate(broken, nil, nil, now); !errors.Is(err, input) {
		t.Errorf("with a disk that cannot be read: %v, want %v", err, input)
	}
	if n := broken.Calls(vfs.OpCreate); n > 0 {
		t.Errorf("%d files were made", n)
	}
}
