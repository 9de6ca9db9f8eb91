// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package load

import "time"

// ProcessorTime is not known here, and zero.
func ProcessorTime() time.Duration { return 0 }
