// SPDX-License-Identifier: Apache-2.0

// Package wire reads and writes what clients of Azure send and expect, as far as that
// needs no state: addresses, values in encoded maps, the messages of a transfer, and
// replies to requests.
//
// Clients differ in how they spell an address, in the type they choose for a number and
// in the spelling of the keys that they read. Here all of that is accepted, and every
// spelling is written. [PathOf] is the one form of an address in which rights are
// compared and the broker is asked: no spelling leads past a check.
package wire
