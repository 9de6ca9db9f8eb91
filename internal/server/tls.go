// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/server/credentials"
)

// prepareTLS loads the certificate that was named, or in development makes one.
func (f *frontend) prepareTLS() error {
	loaded, err := f.loadTLS(f.cfg.TLS)
	if err != nil {
		return err
	}
	f.tls.Store(loaded)
	if loaded != nil && f.cfg.TLS.CertFile == "" {
		f.ca = credentials.CAFile
	}
	return nil
}

// reloadTLS loads the certificate again, for connections to come, and returns when it
// ends; the zero time if there is none. After an error everything is as it was.
func (f *frontend) reloadTLS(files config.TLS) (ends time.Time, err error) {
	loaded, err := f.loadTLS(files)
	if err != nil || loaded == nil {
		return time.Time{}, err
	}
	f.tls.Store(loaded)
	return loaded.Certificates[0].Leaf.NotAfter, nil
}

// loadTLS returns what the files hold; nil if there are none.
func (f *frontend) loadTLS(files config.TLS) (*tls.Config, error) {
	var cert *tls.Certificate
	switch {
	case files.CertFile != "":
		pair, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("load the certificate: %w", err)
		}
		cert = &pair
	case f.cfg.Security.Dev:
		ports, chosen := f.ports()
		made, err := credentials.DevCertificate(f.cfg.FS, ports, chosen, time.Now())
		if err != nil {
			return nil, err
		}
		cert = made
	default:
		return nil, nil
	}
	loaded := &tls.Config{
		Certificates: []tls.Certificate{*cert},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"}, // there is no HTTP/2 here
	}
	if files.ClientCAFile == "" {
		return loaded, nil
	}
	pool, err := loadClientCAs(files.ClientCAFile)
	if err != nil {
		return nil, err
	}
	loaded.ClientCAs, loaded.ClientAuth = pool, tls.VerifyClientCertIfGiven
	return loaded, nil
}

func loadClientCAs(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("load the CA of clients: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("load the CA of clients: there is no certificate in " + file)
	}
	return pool, nil
}

// CheckCertificates reports the files of certificates in a configuration that cannot
// be read or do not belong together.
func CheckCertificates(cfg config.Config) config.Faults {
	var fs config.Faults
	fault := func(field string, err error) { fs = append(fs, cfg.Fault("tls."+field, err.Error())) }
	read := func(field, file string) []byte {
		b, err := os.ReadFile(file)
		if err != nil {
			fault(field, err)
		}
		return b
	}
	if cfg.TLS.CertFile != "" && cfg.TLS.KeyFile != "" {
		cert, key := read("certFile", cfg.TLS.CertFile), read("keyFile", cfg.TLS.KeyFile)
		if len(fs) == 0 {
			if _, err := tls.X509KeyPair(cert, key); err != nil {
				fault("certFile", fmt.Errorf("%s and %s are no certificate and its key: %w", cfg.TLS.CertFile, cfg.TLS.KeyFile, err))
			}
		}
	}
	if cfg.TLS.ClientCAFile != "" {
		if _, err := loadClientCAs(cfg.TLS.ClientCAFile); err != nil {
			fault("clientCAFile", err)
		}
	}
	return fs
}
