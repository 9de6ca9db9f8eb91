// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !freebsd && !windows

package vfs

import "errors"

func diskSpace(string) (Space, error) { return Space{}, errors.ErrUnsupported }
