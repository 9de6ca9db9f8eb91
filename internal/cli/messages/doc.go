// SPDX-License-Identifier: Apache-2.0

// Package messages has the commands about messages and events: send, receive, hub send
// and hub tail over AMQP; peek, explain and those about dead letters over the JSON API.
// show.go prints a message, browse.go reads pages of them.
package messages
