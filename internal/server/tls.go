// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"
)

// prepareTLS loads the certificate that was named, or in development makes one.
func (f *front) prepareTLS() error {
	files := f.cfg.TLS
	var cert *tls.Certificate
	switch {
	case files.CertFile != "":
		pair, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
		if err != nil {
			return fmt.Errorf("load the certificate: %w", err)
		}
		cert = &pair
	case f.cfg.Security.Dev:
		made, err := devCertificate(f.cfg.FS, f.ports(), time.Now())
		if err != nil {
			return err
		}
		cert, f.ca = made, caFile
	default:
		return nil
	}
	f.tls = &tls.Config{
		Certificates: []tls.Certificate{*cert},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"}, // there is no HTTP/2 here
	}
	if files.ClientCAFile == "" {
		return nil
	}
	pem, err := os.ReadFile(files.ClientCAFile)
	if err != nil {
		return fmt.Errorf("load the CA of clients: %w", err)
	}
	f.tls.ClientCAs = x509.NewCertPool()
	if !f.tls.ClientCAs.AppendCertsFromPEM(pem) {
		return errors.New("load the CA of clients: there is no certificate in " + files.ClientCAFile)
	}
	f.tls.ClientAuth = tls.VerifyClientCertIfGiven
	return nil
}
