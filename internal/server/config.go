// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/vfs"
)

// Config is what a broker is made of. FS is required; every other zero value is a
// useful default.
type Config struct {
	FS     vfs.FS   // where everything is kept
	Listen []string // addresses; default 127.0.0.1:5672 and 127.0.0.1:5300
	Shards int      // default one for each core

	// Dev lets peers on this machine in with the emulators' key, and makes a
	// certificate if TLS is nil.
	Dev bool
	// Insecure serves plain text to other machines too.
	Insecure bool
	TLS      *tls.Certificate

	Rules    access.Rules // in place of, or beside, those in the store
	Entities Entities     // created if they are not there yet

	Limits Limits

	// Handler makes the handler of HTTP requests other than health checks and
	// WebSockets; nil answers that there is none.
	Handler func(*broker.Broker, access.Authority) http.Handler

	// Ready is called once everything is up; nil is fine.
	Ready func(Ready)
}

// Entities are definitions from a file.
type Entities struct {
	Queues []entity.Queue
	Topics []Topic
}

// Topic is a topic with its subscriptions.
type Topic struct {
	entity.Topic
	Subscriptions []entity.Subscription
}

// Limits bound what peers may use.
type Limits struct {
	MaxConnections int           // at a time; default 10,000
	MaxStrangers   int           // connections of one address that have proved nothing; default 100
	FirstBytes     time.Duration // to send something; default 5s
	Handshake      time.Duration // for TLS, and for AMQP up to open; default 10s
	Grace          time.Duration // for each layer to stop; default 10s
}

// Ready tells what came up.
type Ready struct {
	Addresses []string // what is listened on, with ports
	// NewKey is the rule that a first start made; its keys are shown this once.
	NewKey *access.Rule
	CA     string // path of the development CA below the store; empty without one
}

// maxShards bounds the default: beyond it goroutines only wait for each other.
const maxShards = 16

func (c Config) withDefaults() Config {
	if len(c.Listen) == 0 {
		c.Listen = []string{"127.0.0.1:5672", "127.0.0.1:5300"}
	}
	c.Shards = cmp.Or(c.Shards, min(runtime.GOMAXPROCS(0), maxShards))
	c.Limits.MaxConnections = cmp.Or(c.Limits.MaxConnections, 10_000)
	c.Limits.MaxStrangers = cmp.Or(c.Limits.MaxStrangers, 100)
	c.Limits.FirstBytes = cmp.Or(c.Limits.FirstBytes, 5*time.Second)
	c.Limits.Handshake = cmp.Or(c.Limits.Handshake, 10*time.Second)
	c.Limits.Grace = cmp.Or(c.Limits.Grace, 10*time.Second)
	return c
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	var errs []error
	if c.FS == nil {
		errs = append(errs, errors.New("server: no store is given"))
	}
	for _, addr := range c.Listen {
		local, err := isLocal(addr)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("listen on %q: %w", addr, err))
		case !local && c.TLS == nil && !c.Insecure:
			errs = append(errs, fmt.Errorf("listen on %q: other machines could read everything; "+
				"give a certificate, or say that plain text is fine with --insecure", addr))
		}
	}
	return errors.Join(errs...)
}
