// SPDX-License-Identifier: Apache-2.0

// Package endpoint is the server side of AMQP 1.0: the protocol state of one peer.
package endpoint
