// SPDX-License-Identifier: Apache-2.0

package message

// GUIDFromRFC returns a UUID in the byte order of .NET's Guid, whose first three
// groups are little-endian. Delivery tags carry lock tokens in this order, while
// everything encoded as an AMQP uuid is in the order of RFC 9562. The swap is its
// own inverse, so that it also turns a tag into a token.
func GUIDFromRFC(id [16]byte) [16]byte {
	return [16]byte{
		id[3], id[2], id[1], id[0], id[5], id[4], id[7], id[6],
		id[8], id[9], id[10], id[11], id[12], id[13], id[14], id[15],
	}
}
