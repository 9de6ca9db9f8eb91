// SPDX-License-Identifier: Apache-2.0

// Package running runs the broker's real binary, and what else a suite needs, as
// processes of their own.
package running

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// The credentials that --dev accepts on loopback: the emulators' well-known ones.
const (
	KeyName = "RootManageSharedAccessKey"
	Key     = "SAS_KEY_VALUE"
)

// Broker is a running broker process.
type Broker struct {
	Port string

	binary string
	dir    string // of its configuration, its log and its data
	cmd    *exec.Cmd
}

// Main runs the tests of a package. They share the broker that it hands to use, whose
// configuration is entities. Clients of this process trust its certificate.
func Main(m *testing.M, entities string, use func(*Broker)) {
	os.Exit(run(m, entities, use))
}

func run(m *testing.M, entities string, use func(*Broker)) (code int) {
	dir, err := os.MkdirTemp("", "triagemq-interop-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if code == 0 {
			os.RemoveAll(dir)
		} else {
			fmt.Fprintln(os.Stderr, "the broker's log and data are kept in", dir)
		}
	}()
	if binary = os.Getenv("TRIAGEMQ_BINARY"); binary == "" {
		binary = filepath.Join(dir, "triagemq")
		top, err := repository()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		build := exec.Command("go", "build", "-o", binary, "./cmd/triagemq")
		build.Dir = top
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the broker: %v\n%s", err, out)
			return 1
		}
	}
	shared, err := startBroker(filepath.Join(dir, "shared"), entities)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.Stop()
	// Read when a TLS client first needs the system's roots, which is later.
	os.Setenv("SSL_CERT_FILE", filepath.Join(shared.dir, "data", "tls", "ca.pem"))
	use(shared)
	return m.Run()
}

// binary is the broker to run: what TRIAGEMQ_BINARY names, or what Main built.
var binary string

// repository finds the directory of the broker's own module.
func repository() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "cmd", "triagemq")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no cmd/triagemq in any directory above")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

// StartBroker starts a broker for one test.
func StartBroker(t *testing.T, entities string) *Broker {
	t.Helper()
	b, err := startBroker(t.TempDir(), entities)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	return b
}

// startBroker starts a broker on a free port with its data below dir.
func startBroker(dir, entities string) (*Broker, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "broker.yaml"), []byte(entities), 0o644); err != nil {
		return nil, err
	}
	b := &Broker{Port: port, binary: binary, dir: dir}
	return b, b.Restart()
}

// Restart starts the process, again on the same port and data, and waits until it is
// ready.
func (b *Broker) Restart() error {
	path := filepath.Join(b.dir, "broker.log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	b.cmd = exec.Command(b.binary, "serve", "--dev", "--data", filepath.Join(b.dir, "data"),
		"--config", filepath.Join(b.dir, "broker.yaml"), "--listen", "127.0.0.1:"+b.Port)
	b.cmd.Stdout, b.cmd.Stderr = log, log
	if err := b.cmd.Start(); err != nil {
		return err
	}
	if err := b.ready(time.After(20 * time.Second)); err != nil {
		b.Kill()
		text, _ := os.ReadFile(path)
		return fmt.Errorf("broker does not get ready: %w\n%s", err, text)
	}
	return nil
}

// ready waits until the broker says so, or until it is late.
func (b *Broker) ready(late <-chan time.Time) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := http.Get("http://127.0.0.1:" + b.Port + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-late:
			return errors.Join(errors.New("no answer in time"), err)
		}
	}
}

// Kill ends the process as a crash would.
func (b *Broker) Kill() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}

// Stop ends the process politely.
func (b *Broker) Stop() {
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { defer close(done); _ = b.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(15 * time.Second):
		_ = b.cmd.Process.Kill()
		<-done
	}
}

// Connection is the connection string for plain AMQP.
func (b *Broker) Connection() string {
	return b.ConnectionWith(KeyName, Key)
}

// ConnectionWith is the connection string for plain AMQP with another key.
func (b *Broker) ConnectionWith(name, key string) string {
	return fmt.Sprintf("Endpoint=sb://127.0.0.1:%s;SharedAccessKeyName=%s;SharedAccessKey=%s;UseDevelopmentEmulator=true", b.Port, name, key)
}

// SecureConnection is the connection string for TLS. The certificate is for
// localhost.
func (b *Broker) SecureConnection() string {
	return fmt.Sprintf("Endpoint=sb://localhost:%s;SharedAccessKeyName=%s;SharedAccessKey=%s", b.Port, KeyName, Key)
}
