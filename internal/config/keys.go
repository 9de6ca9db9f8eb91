// SPDX-License-Identifier: Apache-2.0

package config

import "fmt"

// Trusting reports whether programs on this machine need no key, and listeners
// accept only those.
func (s Security) Trusting() bool { return s.Dev && !s.AllowRemote }

// KeyFaults reports the keys that are too short. In development any key is
// accepted, as no key is needed. Development mode may be set outside the file,
// so Validate does not check this.
func (c Config) KeyFaults() Faults {
	if c.Security.Trusting() {
		return nil
	}
	fs := c.source.entityFaults("security.rules", c.Security.Rules.CheckKeys(nil))
	for i, q := range c.Queues {
		fs = append(fs, c.source.entityFaults(fmt.Sprintf("queues[%d]", i), q.CheckKeys(nil))...)
	}
	for i, t := range c.Topics {
		fs = append(fs, c.source.entityFaults(fmt.Sprintf("topics[%d]", i), t.CheckKeys(nil))...)
	}
	for i, h := range c.Hubs {
		fs = append(fs, c.source.entityFaults(fmt.Sprintf("hubs[%d]", i), h.CheckKeys(nil))...)
	}
	return fs
}
