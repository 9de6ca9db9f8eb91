// SPDX-License-Identifier: Apache-2.0

package budget

import "os"

func systemMemory() int64 { return linuxMemory(os.DirFS("/")) }
