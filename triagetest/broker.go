// SPDX-License-Identifier: Apache-2.0

package triagetest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/server"
	"github.com/triagemq/triagemq/internal/vfs"
)

// Broker is a broker that lives as long as a test.
type Broker struct {
	t       testing.TB
	config  config.Config
	network network
	crashes uint64
	disk    *vfs.Mem
	power   *vfs.Fault   // in front of disk
	stop    func() error // ends the running broker and waits for it
}

// segmentSize keeps the disk in memory small: tests have little to store.
const segmentSize = 4 << 20

// startTimeout bounds how long starting and stopping may take.
const startTimeout = 30 * time.Second

// Start starts a broker with the entities of a configuration in YAML, as
// `triagemq serve --config` takes it. It accepts the emulators' well-known
// connection string. The test fails if the broker does not start, or does not
// stop cleanly when the test ends.
func Start(t testing.TB, yaml string) *Broker {
	t.Helper()
	cfg, err := config.Parse([]byte(yaml))
	if err != nil {
		t.Fatalf("triagetest: %v", err)
	}
	b := &Broker{t: t, config: cfg, disk: vfs.NewMem()}
	b.start()
	t.Cleanup(func() {
		if err := b.stop(); err != nil && !errors.Is(err, errStop) {
			t.Errorf("triagetest: stop the broker: %v", err)
		}
		b.network.close()
	})
	return b
}

// start runs the broker on its disk.
func (b *Broker) start() {
	b.t.Helper()
	b.power = vfs.NewFault(b.disk)
	ready := make(chan struct{})
	cfg := settings(b.config, b.power, &b.network, ready)

	// The broker outlives the test's own context, which ends before the
	// clean-up in which clients say goodbye.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(b.t.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, cfg, slog.New(slog.DiscardHandler)) }() // stop waits for it
	select {
	case <-ready:
	case err := <-done:
		cancel(nil)
		b.t.Fatalf("triagetest: start the broker: %v", err)
	case <-time.After(startTimeout):
		cancel(nil)
		b.t.Fatal("triagetest: the broker does not get ready")
	}
	b.stop = func() error {
		cancel(errStop)
		select {
		case err := <-done:
			return err
		case <-time.After(startTimeout):
			return errors.New("it takes too long")
		}
	}
}

// errStop ends a broker, errPower its disk.
var (
	errStop  = errors.New("triagetest: stop")
	errPower = errors.New("triagetest: power failure")
)

// ConnectionString opens the broker with any Service Bus SDK, and with
// [client.Dial], through a port of the loopback interface.
func (b *Broker) ConnectionString() string { return connectionString(b.address()) }

func connectionString(host string) string {
	return "Endpoint=sb://" + host +
		";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
}

// Port is the port on 127.0.0.1 that serves AMQP, HTTP and WebSockets, with and
// without TLS. It is opened when it is first asked for, and stays the same.
func (b *Broker) Port() string {
	_, port, _ := net.SplitHostPort(b.address())
	return port
}

func (b *Broker) address() string {
	b.t.Helper()
	address, err := b.network.address()
	if err != nil {
		b.t.Fatalf("triagetest: open a port: %v", err)
	}
	return address
}

// Client returns a new client, which is closed when the test ends. It reaches the broker
// through memory, so no port is opened for it.
func (b *Broker) Client() *client.Client {
	b.t.Helper()
	c, err := client.Dial(b.t.Context(), connectionString("localhost"), &client.Options{DialContext: b.network.dial})
	if err != nil {
		b.t.Fatalf("triagetest: %v", err)
	}
	b.t.Cleanup(func() { _ = c.Close() }) // the broker may have gone first
	return c
}

// Crash ends the broker as a power failure would, and starts it again with what
// its disk then holds: all that was acknowledged, and by chance some of what was
// not. Clients reconnect to the same address by themselves.
func (b *Broker) Crash() {
	b.t.Helper()
	// Nothing becomes durable from here on, so nothing more is acknowledged.
	b.power.Before(func(vfs.Op, string) error { return errPower })
	_ = b.stop() // it has every reason to complain
	b.crashes++
	b.disk = b.disk.CrashClone(b.crashes)
	b.start()
}
