// SPDX-License-Identifier: Apache-2.0

package condition

// Shared is shared, for tests.
var Shared = shared
