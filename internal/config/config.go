// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
)

// Config is everything that can be configured. The first half are settings of the
// process, the second half the entities that are wanted.
type Config struct {
	Namespace string   // the name that clients and the dashboard see
	Data      string   // the directory of the store
	Listeners []string // host:port; each speaks AMQP, HTTP and WebSocket, with and without TLS
	TLS       TLS
	Security  Security
	Storage   Storage
	Limits    Limits
	Grace     entity.Duration // total time to stop the process

	Queues []entity.Queue
	Topics []Topic
	Hubs   []entity.Hub

	source source // where things were written; none for environment and flags
}

// TLS names the files of a certificate.
type TLS struct {
	CertFile     string
	KeyFile      string
	ClientCAFile string // whose client certificates are accepted; none by default
}

// Security configures authentication and authorization.
type Security struct {
	Rules entity.AuthorizationRules // of the namespace
	Dev   bool                      // accept the emulators' well-known key, on loopback
	// AllowRemote lets development listen off loopback: then a key is needed, as
	// without Dev, and plain text is allowed.
	AllowRemote bool
	Insecure    bool     // allow plain text off loopback
	Hosts       []string // names by which browsers may reach the broker, besides localhost
	// WebhookNetworks are the networks that webhooks may reach besides the public
	// Internet, such as 10.0.0.0/8.
	WebhookNetworks []string
}

// Storage tunes the store. Zero values mean the defaults of the packages that
// use them.
type Storage struct {
	Shards        int // default one for each core
	SegmentSize   Size
	CacheSize     Size // of message bodies in memory, for each shard
	SnapshotAfter Size // bytes written between two snapshots
}

// Limits bound what clients can use. Zero values mean the defaults of the
// packages that use them.
type Limits struct {
	// Memory is the total memory that the broker may use for clients; zero is half
	// of what GOMEMLIMIT, the control group or the machine allows.
	Memory Size
	// StoredMemory is the memory for what clients have made durable, besides Memory:
	// waiting messages, definitions, consumer groups; zero is a quarter of what is
	// allowed.
	StoredMemory     Size
	MaxConnections   int
	MaxLinks         int // in one connection
	MaxFrameSize     Size
	HandshakeTimeout entity.Duration
	IdleTimeout      entity.Duration
	WriteTimeout     entity.Duration
}

// Topic is a topic with its subscriptions.
type Topic struct {
	entity.Topic
	Subscriptions []entity.Subscription
}

// Default returns the default settings.
func Default() Config {
	return Config{
		Namespace: "triagemq",
		Data:      "triagemq-data",
		Listeners: []string{"localhost:5672", "localhost:5300"},
		Grace:     entity.Duration(10 * time.Second),
	}
}

// Load reads and checks a YAML file. If the error is [Faults], what could be
// read is returned with them, so that callers that also check conditions and
// policies can add their faults: a user gets all of them at once.
func Load(path string) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	return parse(filepath.Base(path), text)
}

// Parse is Load for the text of a YAML file.
func Parse(text []byte) (Config, error) { return parse("triagemq.yaml", text) }

// Merge returns c with everything that over sets instead. Lists replace lists.
// The order is defaults, file, environment, flags:
//
//	config.Default().Merge(file).Merge(environment).Merge(flags)
func (c Config) Merge(over Config) Config {
	c.Namespace = cmp.Or(over.Namespace, c.Namespace)
	c.Data = cmp.Or(over.Data, c.Data)
	c.Listeners = either(over.Listeners, c.Listeners)
	c.TLS.CertFile = cmp.Or(over.TLS.CertFile, c.TLS.CertFile)
	c.TLS.KeyFile = cmp.Or(over.TLS.KeyFile, c.TLS.KeyFile)
	c.TLS.ClientCAFile = cmp.Or(over.TLS.ClientCAFile, c.TLS.ClientCAFile)
	c.Security.Rules = either(over.Security.Rules, c.Security.Rules)
	c.Security.Dev = over.Security.Dev || c.Security.Dev
	c.Security.AllowRemote = over.Security.AllowRemote || c.Security.AllowRemote
	c.Security.Insecure = over.Security.Insecure || c.Security.Insecure
	c.Security.Hosts = either(over.Security.Hosts, c.Security.Hosts)
	c.Security.WebhookNetworks = either(over.Security.WebhookNetworks, c.Security.WebhookNetworks)
	c.Storage.Shards = cmp.Or(over.Storage.Shards, c.Storage.Shards)
	c.Storage.SegmentSize = cmp.Or(over.Storage.SegmentSize, c.Storage.SegmentSize)
	c.Storage.CacheSize = cmp.Or(over.Storage.CacheSize, c.Storage.CacheSize)
	c.Storage.SnapshotAfter = cmp.Or(over.Storage.SnapshotAfter, c.Storage.SnapshotAfter)
	c.Limits.Memory = cmp.Or(over.Limits.Memory, c.Limits.Memory)
	c.Limits.StoredMemory = cmp.Or(over.Limits.StoredMemory, c.Limits.StoredMemory)
	c.Limits.MaxConnections = cmp.Or(over.Limits.MaxConnections, c.Limits.MaxConnections)
	c.Limits.MaxLinks = cmp.Or(over.Limits.MaxLinks, c.Limits.MaxLinks)
	c.Limits.MaxFrameSize = cmp.Or(over.Limits.MaxFrameSize, c.Limits.MaxFrameSize)
	c.Limits.HandshakeTimeout = cmp.Or(over.Limits.HandshakeTimeout, c.Limits.HandshakeTimeout)
	c.Limits.IdleTimeout = cmp.Or(over.Limits.IdleTimeout, c.Limits.IdleTimeout)
	c.Limits.WriteTimeout = cmp.Or(over.Limits.WriteTimeout, c.Limits.WriteTimeout)
	c.Grace = cmp.Or(over.Grace, c.Grace)
	if over.Queues != nil || over.Topics != nil || over.Hubs != nil {
		c.Queues, c.Topics, c.Hubs, c.source = over.Queues, over.Topics, over.Hubs, over.source
	} else if c.source.file == "" {
		c.source = over.source
	}
	return c
}

func either[T any](first, second []T) []T {
	if first != nil {
		return first
	}
	return second
}
