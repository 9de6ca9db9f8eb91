// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/triagemq/triagemq/internal/entity"
)

// Validate reports every fault of c at once. Load and Parse have done it; it is
// for a Config that was merged or put together otherwise.
func (c Config) Validate() error {
	fs := c.settingFaults()
	fs = append(fs, c.entityFaults()...)
	return fs.err()
}

func (c Config) settingFaults() Faults {
	var fs Faults
	for i, address := range c.Listeners {
		if problem := checkAddress(address); problem != "" {
			fs = append(fs, c.Fault(fmt.Sprintf("listeners[%d]", i), problem))
		}
	}
	for i, network := range c.Security.WebhookNetworks {
		if _, err := netip.ParsePrefix(network); err != nil {
			fs = append(fs, c.Fault(fmt.Sprintf("security.webhookNetworks[%d]", i), fmt.Sprintf("%q is not a network such as 10.0.0.0/8", network)))
		}
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		fs = append(fs, c.Fault("tls", "certFile and keyFile are needed together"))
	}
	for _, n := range []struct {
		path  string
		value int
	}{
		{"storage.shards", c.Storage.Shards},
		{"limits.maxConnections", c.Limits.MaxConnections},
		{"limits.maxLinks", c.Limits.MaxLinks},
	} {
		if n.value < 0 {
			fs = append(fs, c.Fault(n.path, fmt.Sprintf("%d is negative", n.value)))
		}
	}
	if s := c.Limits.Memory; s != 0 && s < 16<<20 {
		fs = append(fs, c.Fault("limits.memory", fmt.Sprintf("%v is less than 16MiB", s)))
	}
	if s := c.Limits.StoredMemory; s != 0 && s < 16<<20 {
		fs = append(fs, c.Fault("limits.storedMemory", fmt.Sprintf("%v is less than 16MiB", s)))
	}
	// [AMQP 2.4.1]: a peer must be able to take frames of 512 bytes.
	if s := c.Limits.MaxFrameSize; s != 0 && (s < 512 || s > 1<<30) {
		fs = append(fs, c.Fault("limits.maxFrameSize", fmt.Sprintf("%v is outside 512..1GiB", s)))
	}
	rules := c.source.entityFaults("security.rules", c.Security.Rules.Validate())
	for i := range rules {
		// In this list the key has a shorter name.
		rules[i] = c.Fault(strings.Replace(rules[i].Path, ".keyName", ".name", 1), rules[i].Problem)
	}
	return append(fs, rules...)
}

// checkAddress says what is wrong with an address to listen on.
func checkAddress(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Sprintf("%q is not host:port", address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Sprintf("%q: the port is not a number of 0 to 65535", address)
	}
	return ""
}

func (c Config) entityFaults() Faults {
	var fs Faults
	// Queues, topics and hubs share the addresses of the namespace.
	names := register{config: c}
	for i, q := range c.Queues {
		path := fmt.Sprintf("queues[%d]", i)
		fs = append(fs, c.source.entityFaults(path, q.WithDefaults().Validate())...)
		fs = append(fs, names.add(q.Name, path+".name")...)
	}
	for i, t := range c.Topics {
		path := fmt.Sprintf("topics[%d]", i)
		fs = append(fs, c.source.entityFaults(path, t.Topic.WithDefaults().Validate())...)
		fs = append(fs, names.add(t.Name, path+".name")...)
		subscriptions := register{config: c}
		for j, s := range t.Subscriptions {
			path := fmt.Sprintf("%s.subscriptions[%d]", path, j)
			fs = append(fs, c.source.entityFaults(path, s.WithDefaults().Validate())...)
			fs = append(fs, subscriptions.add(s.Name, path+".name")...)
		}
	}
	for i, h := range c.Hubs {
		path := fmt.Sprintf("hubs[%d]", i)
		fs = append(fs, c.source.entityFaults(path, h.WithDefaults().Validate())...)
		fs = append(fs, names.add(h.Name, path+".name")...)
	}
	fs = append(fs, c.hubTargetFaults()...)
	return append(fs, c.circleFaults()...)
}

// register finds names that are used twice.
type register struct {
	config Config
	first  map[string]string // the path of each name's first use, by key
}

func (r *register) add(name, path string) Faults {
	if r.first == nil {
		r.first = map[string]string{}
	}
	if first, taken := r.first[entity.Key(name)]; taken && name != "" {
		return Faults{r.config.Fault(path, fmt.Sprintf("the name %q is taken by %s", name, first))}
	}
	r.first[entity.Key(name)] = path
	return nil
}
