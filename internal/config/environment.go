// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Environment returns the settings of the process's environment, which lookup
// reads (os.LookupEnv). An empty variable counts as unset.
//
//	TRIAGEMQ_NAMESPACE  TRIAGEMQ_DATA      TRIAGEMQ_LISTEN (host:port, separated by commas)
//	TRIAGEMQ_TLS_CERT   TRIAGEMQ_TLS_KEY   TRIAGEMQ_TLS_CLIENT_CA
//	TRIAGEMQ_DEV        TRIAGEMQ_INSECURE  TRIAGEMQ_ALLOW_REMOTE (true or false)
//	TRIAGEMQ_HOSTS      TRIAGEMQ_WEBHOOK_NETWORKS (separated by commas)
func Environment(lookup func(string) (string, bool)) (Config, error) {
	var c Config
	var fs Faults
	get := func(name string) string { v, _ := lookup(name); return strings.TrimSpace(v) }
	flag := func(name string) bool {
		text := get(name)
		if text == "" {
			return false
		}
		v, err := strconv.ParseBool(text)
		if err != nil {
			fs = append(fs, Fault{Path: name, Problem: fmt.Sprintf("%q is neither true nor false", text)})
		}
		return v
	}
	c.Namespace = get("TRIAGEMQ_NAMESPACE")
	c.Data = get("TRIAGEMQ_DATA")
	c.TLS = TLS{get("TRIAGEMQ_TLS_CERT"), get("TRIAGEMQ_TLS_KEY"), get("TRIAGEMQ_TLS_CLIENT_CA")}
	c.Security.Dev = flag("TRIAGEMQ_DEV")
	c.Security.Insecure = flag("TRIAGEMQ_INSECURE")
	c.Security.AllowRemote = flag("TRIAGEMQ_ALLOW_REMOTE")
	list := func(name string) []string {
		text := get(name)
		if text == "" {
			return nil
		}
		return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	}
	c.Security.Hosts = list("TRIAGEMQ_HOSTS")
	c.Security.WebhookNetworks = list("TRIAGEMQ_WEBHOOK_NETWORKS")
	for _, address := range list("TRIAGEMQ_LISTEN") {
		if problem := checkAddress(address); problem != "" {
			fs = append(fs, Fault{Path: "TRIAGEMQ_LISTEN", Problem: problem})
		}
		c.Listeners = append(c.Listeners, address)
	}
	return c, fs.err()
}
