// SPDX-License-Identifier: Apache-2.0

// Package policy says what a message is worth.
//
// The level of a message is that of the class its queue's policy puts it in, else
// what the message itself asks for: the application property Priority, a number or
// a name, else the priority of its header, else 4, as in AMQP. Higher wins.
package policy
