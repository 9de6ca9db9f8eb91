// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package load

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
