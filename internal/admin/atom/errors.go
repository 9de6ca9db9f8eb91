// SPDX-License-Identifier: Apache-2.0

package atom

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/triagemq/triagemq/internal/admin/problem"
)

// fail writes an error the way the service does and returns its status.
func (c *call) fail(w http.ResponseWriter, err error) int {
	p, planned := problem.Of(err)
	if !planned && c.Context().Err() == nil { // else the client has left
		c.Log.Error("unexpected error of a management request", "method", c.Method, "path", c.URL.Path, "err", err)
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Add("WWW-Authenticate", `Basic realm="triagemq"`)
	}
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(p.RetryAfter)+1))
	}
	c.out.Reset()
	c.out.open("Error")
	c.out.leaf("Code", strconv.Itoa(p.Status))
	c.out.leaf("Detail", detail(p, err))
	c.out.close("Error")
	return p.Status
}

// detail words an error as the service does: with a sub-code that begins with
// the status, and for a change that is not allowed with the text that clients'
// tests compare.
func detail(p *problem.Problem, err error) string {
	text := p.Message
	if us := problem.Updates(err); len(us) > 0 {
		text = ""
		for _, u := range us {
			text += u.Text
		}
	}
	switch p.Status {
	case http.StatusBadRequest:
		return "SubCode=40000. Bad Request. " + text
	case http.StatusNotFound:
		return "SubCode=40400. Not Found. " + text
	case http.StatusConflict:
		return "SubCode=40900. Conflict. " + text
	}
	return text
}

// operations are the names of operations in the service's errors for
// subscriptions, rules and consumer groups.
var operations = map[kind]map[string]string{
	kindSubscription:  {http.MethodGet: "GetSubscription", http.MethodPut: "CreateOrUpdateSubscription", http.MethodDelete: "DeleteSubscription"},
	feedSubscriptions: {http.MethodGet: "EnumerateSubscriptions"},
	kindRule:          {http.MethodGet: "GetRule", http.MethodPut: "CreateOrUpdateRule", http.MethodDelete: "DeleteRule"},
	kindGroup:         {http.MethodGet: "GetConsumerGroup", http.MethodPut: "CreateOrUpdateConsumerGroup", http.MethodDelete: "DeleteConsumerGroup"},
	feedGroups:        {http.MethodGet: "EnumerateConsumerGroups"},
	feedRules:         {http.MethodGet: "EnumerateRules", http.MethodPut: "CreateOrUpdateRule"},
}

// unauthorized words the lack of a right as the service does.
func (c *call) unauthorized(err error) error {
	p := &problem.Problem{Status: http.StatusUnauthorized, Code: "unauthorized"}
	if name, ok := operations[c.kind][c.Method]; ok {
		p.Message = fmt.Sprintf("401 SubCode=40100: Unauthorized : Unauthorized access for '%s' operation on endpoint '%s%s'.",
			name, c.base(), c.target.path())
		return p
	}
	switch c.Method {
	case http.MethodGet:
		p.Message = "Manage,EntityRead claims required for this operation."
	case http.MethodPut:
		p.Message = "Authorization failed for specified action: Manage,EntityWrite."
	case http.MethodDelete:
		p.Message = "Authorization failed for specified action: Manage,EntityDelete."
	default:
		return err
	}
	return p
}
