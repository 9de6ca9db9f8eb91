// SPDX-License-Identifier: Apache-2.0

// Package webhook sends alerts of objectives to the addresses that policies name.
//
// A target is the webhook of one entity. Each has a queue and, while alerts wait, a
// goroutine of its own: a slow target delays no other. Queues, targets and requests at a
// time are bounded, of all and of each queue or topic; what is dropped is logged.
//
// An address is chosen by somebody who may write a policy, not by the operator. So a
// request goes to the public Internet and to the networks that the operator allows, and
// nowhere else: client.go checks the address when the connection is made.
package webhook
