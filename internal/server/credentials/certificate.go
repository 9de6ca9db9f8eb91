// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/vfs"
)

// Files of the development certificate. A client that trusts CAFile needs nothing
// else.
const (
	tlsDir   = "tls"
	CAFile   = tlsDir + "/ca.pem"
	certFile = tlsDir + "/cert.pem"
	keyFile  = tlsDir + "/key.pem"
)

const (
	certLife = 5 * 365 * 24 * time.Hour
	// renewBefore makes a new certificate rather than one that ends soon.
	renewBefore = 30 * 24 * time.Hour
	// maxOldNames is how many names of the one before a new certificate takes over,
	// the latest first.
	maxOldNames = 100
)

// DevCertificate returns the certificate for localhost, made at the first start
// together with a CA whose key is thrown away: it can never sign anything else.
//
// The set is three files, and a crash may leave some of an old set with some of a
// new one. So each start checks that the files belong together, and makes a new
// set if they do not. Clients that trust the old CA have to trust the new one, as
// after any renewal.
//
// It is also for names with each of the ports, such as localhost:5671: the Go SDK takes
// host and port of a connection string for the name, and Go compares a name that cannot
// be that of a host as it is. Others ignore such names. A start on a new port makes a new
// certificate, for the old ports as well, signed by a new CA. A port that the system chose
// is no reason for that, as it does so at each start: it is named if a certificate has to
// be made.
func DevCertificate(fsys vfs.FS, ports, chosen []string, now time.Time) (*tls.Certificate, error) {
	names := certificateNames(ports)
	cert, err := loadCertificate(fsys)
	if err == nil && now.Before(cert.Leaf.NotAfter.Add(-renewBefore)) && len(missing(cert.Leaf.DNSNames, names)) == 0 {
		return cert, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errMismatch) {
		return nil, fmt.Errorf("read the certificate in %s: %w", tlsDir, err)
	}
	names = append(names, missing(names, certificateNames(chosen))...)
	if cert != nil {
		old := missing(names, cert.Leaf.DNSNames)
		names = append(names, old[:min(len(old), maxOldNames)]...)
	}
	if err := makeCertificate(fsys, names, now); err != nil {
		return nil, fmt.Errorf("make a certificate in %s: %w", tlsDir, err)
	}
	return loadCertificate(fsys)
}

// certificateNames are the names that the certificate is for.
func certificateNames(ports []string) []string {
	names := []string{"localhost", "*.localhost"}
	for _, port := range ports {
		for _, host := range []string{"localhost", "127.0.0.1"} {
			if name := net.JoinHostPort(host, port); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// missing returns what of want is not in have.
func missing(have, want []string) []string {
	return slices.DeleteFunc(slices.Clone(want), func(name string) bool { return slices.Contains(have, name) })
}

// errMismatch means that the files of a certificate were all read but do not
// belong together.
var errMismatch = errors.New("credentials: certificate, key and CA do not match")

// loadCertificate reads the set of files and checks that the key is that of the
// certificate, and that the CA signed it.
func loadCertificate(fsys vfs.FS) (*tls.Certificate, error) {
	var files [3][]byte
	for i, name := range []string{certFile, keyFile, CAFile} {
		var err error
		if files[i], err = ReadFile(fsys, name); err != nil {
			return nil, err
		}
	}
	pair, err := tls.X509KeyPair(files[0], files[1])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMismatch, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(files[2])
	// Whether it is still valid is the caller's question.
	valid := x509.VerifyOptions{Roots: roots, CurrentTime: pair.Leaf.NotBefore}
	if _, err := pair.Leaf.Verify(valid); err != nil {
		return nil, fmt.Errorf("%w: %w", errMismatch, err)
	}
	return &pair, nil
}

func makeCertificate(fsys vfs.FS, names []string, now time.Time) error {
	ca, caKey, err := newCertificate(&x509.Certificate{
		Subject:               pkix.Name{CommonName: "TriageMQ development CA", Organization: []string{"TriageMQ"}},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}, now, nil, nil)
	if err != nil {
		return err
	}
	leaf, leafKey, err := newCertificate(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "localhost", Organization: []string{"TriageMQ"}},
		DNSNames:    names,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, now, ca, caKey)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		return err
	}
	if err := fsys.MkdirAll(tlsDir); err != nil {
		return err
	}
	caPEM := encodePEM("CERTIFICATE", ca.Raw)
	for _, f := range []struct {
		name string
		b    []byte
	}{
		{CAFile, caPEM},
		{keyFile, encodePEM("PRIVATE KEY", key)},
		{certFile, append(encodePEM("CERTIFICATE", leaf.Raw), caPEM...)},
	} {
		if err := writeFile(fsys, f.name, f.b); err != nil {
			return err
		}
	}
	return nil
}

// newCertificate completes a template and signs it with the parent, or with
// itself.
func newCertificate(t *x509.Certificate, now time.Time, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	t.SerialNumber = serial
	t.NotBefore = now.Add(-time.Hour)
	t.NotAfter = now.Add(certLife)
	if parent == nil {
		parent, parentKey = t, key
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

func encodePEM(kind string, b []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b})
}
