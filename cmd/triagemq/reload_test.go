// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// writeCertificate makes a certificate with that number, and writes it and its key to
// cert.pem and key.pem.
func writeCertificate(t *testing.T, dir string, number int64) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(number), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeText(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})))
	writeText(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	return certFile, keyFile
}

// shownBy returns the number of the certificate that a broker shows.
func shownBy(t *testing.T, address string) int64 {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // whose it is, is the question
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// SIGHUP reads the certificate again, with and without a configuration file. One that
// cannot be read is reported, and the one from before stays.
func TestCertificateIsReadAgain(t *testing.T) {
	for _, how := range []string{"flags", "file"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			certFile, keyFile := writeCertificate(t, dir, 1)
			args := []string{"--tls-cert", certFile, "--tls-key", keyFile}
			if how == "file" {
				file := filepath.Join(dir, "c.yaml")
				writeText(t, file, "tls: {certFile: "+certFile+", keyFile: "+keyFile+"}\nqueues: [{name: q}]\n")
				args = []string{"--config", file}
			}
			p := serveOn(t, filepath.Join(dir, "data"), args...)
			address := p.wait(&p.out, listening)
			if got := shownBy(t, address); got != 1 {
				t.Fatalf("at first it shows %d", got)
			}
			writeCertificate(t, dir, 2)
			p.signal(syscall.SIGHUP)
			p.wait(&p.err, "the certificate was read again")
			if got := shownBy(t, address); got != 2 {
				t.Errorf("after SIGHUP it shows %d, want 2", got)
			}
			if err := os.Remove(certFile); err != nil {
				t.Fatal(err)
			}
			p.signal(syscall.SIGHUP)
			p.wait(&p.err, `the certificate could not be read again.*cert\.pem`)
			if got := shownBy(t, address); got != 2 {
				t.Errorf("without the file it shows %d, want 2 as before", got)
			}
		})
	}
}

// A configuration file with faults is no reason to go on with a key that was rotated
// because it leaked.
func TestKeysAreReadAgainDespiteFaults(t *testing.T) {
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "c.yaml")
	writeText(t, file, "queues: [{name: q}]\n")
	p := serveOn(t, data, "--config", file)
	first := p.wait(&p.out, connection)
	writeText(t, file, "queues: [{name: q, lockDuration: long}]\n")
	command(t, "key", "rotate", "--data", data, "--both")
	p.wait(&p.err, `is not applied:\n.*lockDuration(?s:.*)keys were read again`)
	if code, _, complaint := try(t, "queue", "list", "--connection-string", first); code == 0 || !strings.Contains(complaint, "check the key") {
		t.Errorf("with the old key: code %d, %s", code, complaint)
	}
}
