// SPDX-License-Identifier: Apache-2.0

// Package connlimit bounds what peers cost that have not authenticated themselves.
//
//	limiter.go      the number of connections; which one is closed for a new one
//	descriptors*.go how many there may be, so that the store has descriptors left
//	refusals.go     counts refused logins, and logs each only once in a while
//	address.go      addresses, and the networks by which peers are counted
package connlimit
