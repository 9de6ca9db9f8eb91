// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin/metrics"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/clock"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/hubs"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/server/connlimit"
	"github.com/triagemq/triagemq/internal/streamserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// Config is what a broker is made of: what its user set, and the parts that the
// caller brings along.
type Config struct {
	config.Config

	// FS is where everything is kept; nil is the directory Data on disk.
	FS vfs.FS

	// Opened are listeners besides those of Listeners, which are open already, such as one
	// in memory. The server closes them when it stops.
	Opened []net.Listener

	// MaxUnauthenticated is how many connections may have proved nothing yet; zero is
	// 768, or fewer if there is little memory.
	MaxUnauthenticated int
	// MaxUnsynced is how much memory messages may take that are not on disk yet,
	// in bytes; zero is 64 MiB, or half of the memory for peers if that is less.
	MaxUnsynced int64
	// FirstBytes is how long a peer may take to say anything; zero is 5s.
	FirstBytes time.Duration

	// Handler makes the handler of HTTP requests other than health checks and
	// WebSockets; nil is the administration API.
	Handler func(Parts) http.Handler

	// Changes brings configurations whose keys, certificates and entities are
	// applied while the broker runs; nil is none. Other settings in them are not
	// looked at.
	Changes <-chan config.Config
	// Reload has the keys of the store and the certificates read again; nil is never.
	Reload <-chan struct{}

	// Ready is called once everything is up; nil is fine.
	Ready func(Ready)
}

// Parts is what an HTTP handler works with.
type Parts struct {
	Broker *broker.Broker
	Keeper *access.RuleAuthority
	// Memory is charged for what peers make the process hold.
	Memory *budget.Process
	// Authority returns who decides about a request, which depends on where it
	// comes from: in development, peers on this machine need no key.
	Authority func(*http.Request) access.Authority
	// Disk reports how much space the store has.
	Disk func() metrics.Disk
}

// Ready tells what came up.
type Ready struct {
	Addresses []string // what is listened on, with ports
	// NewKey is the rule that a first start made; its keys are to be shown.
	NewKey *access.Rule
	TLS    bool
	CA     string // path of the development CA below the store; empty without one
}

// maxShards bounds the default: beyond it goroutines only wait for each other.
const maxShards = 16

func (c Config) withDefaults() Config {
	c.Config = config.Default().Merge(c.Config)
	if c.FS == nil {
		c.FS = vfs.OS(c.Data)
	}
	c.Storage.Shards = cmp.Or(c.Storage.Shards, min(runtime.GOMAXPROCS(0), maxShards))
	c.Limits.MaxConnections = cmp.Or(c.Limits.MaxConnections, 10_000)
	c.MaxUnauthenticated = cmp.Or(c.MaxUnauthenticated, 768)
	c.FirstBytes = cmp.Or(c.FirstBytes, 5*time.Second)
	return c
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	errs := []error{c.Config.Validate(), checkPolicies(c.Config)}
	if short := c.KeyFaults(); len(short) > 0 {
		errs = append(errs, short)
	}
	for _, addr := range c.Listeners {
		switch local, err := connlimit.IsLocal(addr); {
		case err != nil || local:
		case c.trusting():
			errs = append(errs, fmt.Errorf("listen on %s: --dev accepts clients without a key and is for loopback only; "+
				"in a container add --allow-remote: then every client needs a key, which the first start prints and `triagemq key show` shows", addr))
		case c.TLS.CertFile == "" && !c.plainText():
			errs = append(errs, fmt.Errorf("listen on %s: not loopback and no TLS; "+
				"set --tls-cert and --tls-key, or allow plain text with --insecure", addr))
		}
	}
	return errors.Join(errs...)
}

// trusting reports whether peers on this machine are accepted without a key.
func (c Config) trusting() bool { return c.Security.Trusting() }

// plainText reports whether other machines may speak plain text.
func (c Config) plainText() bool {
	return c.Security.Insecure || c.Security.Dev && c.Security.AllowRemote
}

func (c Config) endpoint() endpoint.Config {
	return endpoint.Config{
		MaxFrameSize:     uint32(c.Limits.MaxFrameSize),
		MaxLinks:         c.Limits.MaxLinks,
		HandshakeTimeout: c.Limits.HandshakeTimeout.Std(),
		IdleTimeout:      c.Limits.IdleTimeout.Std(),
		WriteTimeout:     c.Limits.WriteTimeout.Std(),
	}
}

// handshake bounds what comes before AMQP's own.
func (c Config) handshake() time.Duration {
	return cmp.Or(c.Limits.HandshakeTimeout.Std(), 10*time.Second)
}

// writeTimeout is how long a peer may take to read, or to send, a piece of
// something over HTTP.
func (c Config) writeTimeout() time.Duration {
	return cmp.Or(c.Limits.WriteTimeout.Std(), 10*time.Second)
}

func (c Config) wal() wal.Options {
	return wal.Options{SegmentSize: uint64(c.Storage.SegmentSize)}
}

func (c Config) shard() queueserver.Options {
	return queueserver.Options{
		CacheBytes:    int(c.Storage.CacheSize),
		SnapshotAfter: uint64(c.Storage.SnapshotAfter),
	}
}

// hubs are the settings of the logs of event hubs.
func (c Config) hubs(shared *clock.Clock, stored *budget.Account, log *slog.Logger) hubs.Options {
	journals := c.wal()
	journals.Small = true
	return hubs.Options{
		Journal: journals,
		Files:   vfs.NewFiles(connlimit.HubFiles(connlimit.MaxFiles())),
		Hub:     streamserver.Options{Clock: shared, Stored: stored},
		Wrap: func(name string, j journal.Journal) journal.Journal {
			return &disk{Journal: j, log: log.With("file", name)}
		},
	}
}

// webhookNetworks returns what was configured; Validate has checked it.
func (c Config) webhookNetworks() []netip.Prefix {
	var ps []netip.Prefix
	for _, text := range c.Security.WebhookNetworks {
		if p, err := netip.ParsePrefix(text); err == nil {
			ps = append(ps, p.Masked())
		}
	}
	return ps
}
