// SPDX-License-Identifier: Apache-2.0

// Package entities has the commands that manage a running broker: queues, topics,
// subscriptions and rules (entity.go has what they share), their policies and what is
// measured of them, and whole namespaces from a file (apply.go) and into one
// (export.go). All of them use the JSON API.
package entities
