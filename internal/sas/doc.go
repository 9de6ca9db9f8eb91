// SPDX-License-Identifier: Apache-2.0

// Package sas makes and reads shared access signatures, the tokens of Service Bus.
//
// # Format
//
//	SharedAccessSignature sr=<resource>&sig=<signature>&se=<expiry>&skn=<key name>
//
//	resource   a URL, escaped, in lower case
//	expiry     seconds since 1970
//	signature  base64 of HMAC-SHA256(key, resource + "\n" + expiry), escaped
//
// The signature covers resource and expiry exactly as they are written into the
// token. Clients differ in how they escape, so a reader keeps both as they came.
//
// # Not here
//
// Which keys there are and what they allow is package access. The limit on the
// length of a token is its caller's: package limits has it.
package sas
