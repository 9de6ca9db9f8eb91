// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"strings"
)

// runningFile is locked by the broker that runs on a data directory, for other
// commands to find its process. The lock ends with the process, so it is never out of
// date as a number in a file may be: SIGHUP would end a process that is no broker. In
// it is how the latest broker is reached.
const runningFile = "serve.lock"

// reach is how clients on this machine reach a broker.
type reach struct {
	endpoint  string // for a connection string
	encrypted bool
}

func (r reach) String() string {
	if r.encrypted {
		return r.endpoint + " tls\n"
	}
	return r.endpoint + "\n"
}

// lastReach returns how the latest broker on a data directory is, or was, reached.
func lastReach(data string) (r reach, ok bool) {
	text, err := os.ReadFile(filepath.Join(data, runningFile))
	if err != nil {
		return reach{}, false
	}
	words := strings.Fields(string(text))
	if len(words) == 0 { // older brokers do not tell
		return reach{}, false
	}
	return reach{words[0], len(words) > 1}, true
}
