// SPDX-License-Identifier: Apache-2.0

// Package connlimit bounds the number of connections, and what peers cost that have not
// authenticated themselves.
//
//	limiter.go      the number of connections; which one is closed for a new one
//	share.go        the connections of each account, and the reserve
//	descriptors*.go how many there may be, so that the store has descriptors left
//	refusals.go     counts refused logins, and logs each only once in a while
//	address.go      addresses, and the networks by which peers are counted
package connlimit
