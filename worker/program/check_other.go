// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package program

func checkStart(string, string) error { return errUnsupported }
