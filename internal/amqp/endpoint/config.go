// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"cmp"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/budget"
)

// Config holds what a connection allows its peer. Every zero value is a useful
// default.
type Config struct {
	ContainerID string // default "triagemq"

	MaxFrameSize   uint32 // largest frame we take after open; default 65536
	ChannelMax     uint16 // highest channel; default 4999
	HandleMax      uint32 // highest handle in a session; default 1023
	MaxLinks       int    // in one connection; default 10000
	MaxMessageSize uint64 // of a link that sets none; default 1 MiB
	MaxPartial     int    // bytes of unfinished deliveries; default 128 MiB
	IncomingWindow uint32 // transfers in a session; default 8192
	MaxCredit      uint32 // most that Link.Credit reports; default 2048

	// Account is charged with what the peer makes us hold; nil is no limit.
	Account *budget.Account
	// Unauthenticated says that the peer has proved nothing until Conn.Known says otherwise.
	// Until then it may do little: a few sessions and links, small frames.
	Unauthenticated bool

	HighOutput int // bytes waiting for the peer at which sending pauses; default 1 MiB
	MaxOutput  int // bytes waiting for the peer at which it is cut off; default 256 MiB

	HandshakeTimeout time.Duration // from the first byte to open; default 10s
	IdleTimeout      time.Duration // advertised; a peer may be silent for twice that; default 60s
	Heartbeat        time.Duration // our longest silence; default 15s
	WriteTimeout     time.Duration // for one write; default 10s
}

func (c Config) withDefaults() Config {
	c.ContainerID = cmp.Or(c.ContainerID, "triagemq")
	c.MaxFrameSize = max(cmp.Or(c.MaxFrameSize, 64<<10), frame.MinFrameSize)
	c.ChannelMax = cmp.Or(c.ChannelMax, 4999)
	c.HandleMax = cmp.Or(c.HandleMax, 1023)
	c.MaxLinks = cmp.Or(c.MaxLinks, 10000)
	c.MaxMessageSize = cmp.Or(c.MaxMessageSize, 1<<20)
	c.MaxPartial = cmp.Or(c.MaxPartial, 128<<20)
	c.IncomingWindow = cmp.Or(c.IncomingWindow, 8192)
	c.MaxCredit = cmp.Or(c.MaxCredit, 2048)
	c.HighOutput = cmp.Or(c.HighOutput, 1<<20)
	c.MaxOutput = cmp.Or(c.MaxOutput, 256<<20)
	c.HandshakeTimeout = cmp.Or(c.HandshakeTimeout, 10*time.Second)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, time.Minute)
	c.Heartbeat = cmp.Or(c.Heartbeat, 15*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 10*time.Second)
	return c
}
