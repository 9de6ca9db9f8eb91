// SPDX-License-Identifier: Apache-2.0

// Package blobstore keeps the records of event processors in Azure Blob Storage, or in
// what speaks its protocol, as the SDKs for Event Hubs do. Processors of those SDKs and of
// package processor can so share one hub.
//
//	blobs, err := container.NewClientFromConnectionString(connection, "checkpoints", nil)
//	p := processor.Processor{Client: c, Hub: "readings", Handle: handle, Store: blobstore.New(blobs, nil)}
//
// # Layout
//
// Each partition has two blobs without content, whose metadata is the record:
//
//	{namespace}/{hub}/{group}/ownership/{partition}     ownerid
//	{namespace}/{hub}/{group}/checkpoint/{partition}    sequencenumber, offset
//
// All names are in lower case and the namespace has no port, as the SDKs for .NET, Java,
// JavaScript and Python have them. The SDK for Go takes names as they are given: with
// [Options].GoNames this store does the same. Fleets that mix Go with others choose names
// in lower case and a namespace without a port.
//
// # Promise
//
// A record is claimed only if nobody has changed it since it was listed. The container has
// to exist. Times are those of the service.
package blobstore
