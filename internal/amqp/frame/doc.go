// SPDX-License-Identifier: Apache-2.0

// Package frame turns AMQP frames, performatives and SASL frames into bytes and back.
package frame
