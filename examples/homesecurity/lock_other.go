// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import "errors"

func lockFile(string) (func(), error) {
	return nil, errors.New("instances cannot share a directory on this system: give --blobs the connection string of Azurite or of a storage account")
}
