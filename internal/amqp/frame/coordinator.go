// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

// Coordinator is the target of a link that controls transactions [AMQP 4.5.1].
type Coordinator struct {
	Capabilities []string
}

// Append appends c, descriptor included.
func (c *Coordinator) Append(dst []byte) []byte {
	w := compose(dst, CodeCoordinator)
	w.symbols(c.Capabilities)
	return w.close()
}

// Decode reads the fields of a coordinator.
func (c *Coordinator) Decode(r *codec.Reader) {
	c.Capabilities = symbols(r)
}
