// SPDX-License-Identifier: Apache-2.0

package codec

// Code returns the code of a descriptor: its number, or the number of a symbol
// that the specification defines, or 0.
func (v Value) Code() uint64 {
	switch v.kind {
	case KindUlong:
		return v.num
	case KindSymbol:
		return descriptors[v.data]
	}
	return 0
}

// descriptors lists the symbolic form of every descriptor of the specification,
// and of the filters that brokers share by registration.
var descriptors = map[string]uint64{
	// [AMQP 2.7] performatives, [AMQP 2.8.14] error
	"amqp:open:list":        0x10,
	"amqp:begin:list":       0x11,
	"amqp:attach:list":      0x12,
	"amqp:flow:list":        0x13,
	"amqp:transfer:list":    0x14,
	"amqp:disposition:list": 0x15,
	"amqp:detach:list":      0x16,
	"amqp:end:list":         0x17,
	"amqp:close:list":       0x18,
	"amqp:error:list":       0x1d,

	// [AMQP 3.4] delivery states, [AMQP 3.5] sources and targets
	"amqp:received:list":                       0x23,
	"amqp:accepted:list":                       0x24,
	"amqp:rejected:list":                       0x25,
	"amqp:released:list":                       0x26,
	"amqp:modified:list":                       0x27,
	"amqp:source:list":                         0x28,
	"amqp:target:list":                         0x29,
	"amqp:delete-on-close:list":                0x2b,
	"amqp:delete-on-no-links:list":             0x2c,
	"amqp:delete-on-no-messages:list":          0x2d,
	"amqp:delete-on-no-links-or-messages:list": 0x2e,

	// [AMQP 4.5] coordination
	"amqp:coordinator:list":         0x30,
	"amqp:declare:list":             0x31,
	"amqp:discharge:list":           0x32,
	"amqp:declared:list":            0x33,
	"amqp:transactional-state:list": 0x34,

	// [AMQP 5.3.3] SASL
	"amqp:sasl-mechanisms:list": 0x40,
	"amqp:sasl-init:list":       0x41,
	"amqp:sasl-challenge:list":  0x42,
	"amqp:sasl-response:list":   0x43,
	"amqp:sasl-outcome:list":    0x44,

	// [AMQP 3.2] message sections
	"amqp:header:list":                0x70,
	"amqp:delivery-annotations:map":   0x71,
	"amqp:message-annotations:map":    0x72,
	"amqp:properties:list":            0x73,
	"amqp:application-properties:map": 0x74,
	"amqp:data:binary":                0x75,
	"amqp:amqp-sequence:list":         0x76,
	"amqp:amqp-value:*":               0x77,
	"amqp:footer:map":                 0x78,

	"apache.org:selector-filter:string": 0x468C00000004,
	"com.microsoft:session-filter":      0x137000000C,
}
