// SPDX-License-Identifier: Apache-2.0

//go:build linux

package limits

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/test/process"
)

func TestMain(m *testing.M) { process.Main(m) }

// broker is a running process.
type broker struct {
	*process.Process
	t *testing.T
}

// start runs the broker in a shell that first does what limit says, with small
// segments and the queue q.
func start(t *testing.T, limit string) *broker {
	t.Helper()
	return startIn(t, t.TempDir(), limit, "")
}

// startIn is start in a directory, which may have been used before, with more configuration.
func startIn(t *testing.T, dir, limit, config string) *broker {
	t.Helper()
	p, err := process.Start(process.Options{
		Dir: dir, Shell: limit,
		Config: "storage: {segmentSize: 1MiB, snapshotAfter: 1MiB}\nqueues: [{name: q}]\n" + config,
		Args:   []string{"--dev", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Errorf("the broker ended with %v\n%s", err, p.LastWords())
		}
	})
	return &broker{p, t}
}

// session logs in and begins a session.
func (b *broker) session(ctx context.Context) (*amqp.Session, error) {
	c, err := amqp.Dial(ctx, "amqp://"+b.Addr, nil)
	if err != nil {
		return nil, err
	}
	b.t.Cleanup(func() { c.Close() })
	return c.NewSession(ctx, nil)
}
