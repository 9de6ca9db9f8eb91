// SPDX-License-Identifier: Apache-2.0

// Package address reads how a user says where a broker is: a connection string of
// Service Bus, or a URL. The client and the load generator read the same text, and
// each decides which schemes and credentials it can use.
//
// # Promise
//
// No error contains a key or a password.
package address
