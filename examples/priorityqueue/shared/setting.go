// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Topic is the topic in triagemq.yaml.
const Topic = "priority-jobs"

// ConnectionString is read from the environment; the default is for a broker
// that `triagemq serve --dev` started on this machine.
func ConnectionString() string {
	return Setting("TRIAGEMQ_CONNECTION_STRING", "Endpoint=sb://localhost;"+
		"SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true")
}

// Setting returns a variable of the environment, or otherwise if it is not set.
func Setting(name, otherwise string) string { return cmp.Or(os.Getenv(name), otherwise) }

// Pool says how many instances serve a subscription.
type Pool struct {
	Subscription string
	Instances    int
}

// ParsePools reads pools from text such as high=3,low=1.
func ParsePools(text string) ([]Pool, error) {
	var pools []Pool
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || name == "" {
			return nil, fmt.Errorf("%q is not a subscription with a number of instances, such as high=3", part)
		}
		pools = append(pools, Pool{name, n})
	}
	return pools, nil
}
