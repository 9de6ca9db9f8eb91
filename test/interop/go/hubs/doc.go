// SPDX-License-Identifier: Apache-2.0

// Package hubs drives the real broker binary with the unmodified Azure Event Hubs SDK
// for Go, with its processors and its checkpoint store, which Azurite's blobs hold.
//
// # Promise
//
// Each test is one thing that users of the SDK do. It passes against our broker
// for the reason that it would pass against the service.
//
// # Assumptions
//
// Those of the suite for Service Bus, and Node.js for Azurite.
package hubs
