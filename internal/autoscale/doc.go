// SPDX-License-Identifier: Apache-2.0

// Package autoscale decides how many slots a worker pool has, from what its sources need.
//
// With a broker that measures demand, the pool follows it: up at once, and down to the
// most that was needed during the cool-down. With nothing waiting and nothing running it
// goes down to its floor, which may be zero: the broker says when there is work again.
//
// Without one, the pool tries: while all slots are busy it adds some, and if they are
// filled it adds more. Slots that stay idle during the cool-down go, except one: only a
// pool that asks for messages learns that there are some.
//
// # Invariants
//
//  1. The number of slots is between floor and ceiling.
//  2. It is not reduced within the cool-down after any change.
//  3. It is reduced only if fewer would have done for all of the cool-down.
//
// # Concurrency
//
// A Scaler belongs to one goroutine. It has no clock: the time is an argument.
package autoscale
