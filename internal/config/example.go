// SPDX-License-Identifier: Apache-2.0

package config

import _ "embed" // for example.yaml

//go:embed example.yaml
var example string

// Example returns a file that explains itself. It parses.
func Example() string { return example }
