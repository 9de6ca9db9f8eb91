// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"testing"

	"github.com/triagemq/triagemq/internal/access"
)

// What can be asked for at both doors needs the same right, unless the table says why not,
// and what changes the work of others needs Manage.
func TestOperationsNeedTheSameAtBothDoors(t *testing.T) {
	seen := make(map[string]string)
	for _, o := range access.Operations() {
		if (o.ByAMQP != 0) != (o.Why != "") || o.ByAMQP != 0 && (len(o.AMQP) == 0 || len(o.HTTP) == 0) {
			t.Errorf("%s: another right over AMQP, and why, belong together, for what is at both doors", o.What)
		}
		if o.Own != 0 && !o.Needs.Has(o.Own) {
			t.Errorf("%s: more is needed for what is the caller's own", o.What)
		}
		for _, name := range append(append([]string{}, o.AMQP...), o.HTTP...) {
			if other, ok := seen[name]; ok {
				t.Errorf("%s is in two rows: %q and %q", name, other, o.What)
			}
			seen[name] = o.What
		}
		for _, name := range o.AMQP {
			needs, own := access.OfRequest(name)
			if o.ByAMQP == 0 && needs != o.Needs || o.Own != 0 && own != o.Own {
				t.Errorf("%s needs %v, and %v of the caller's own", name, needs, own)
			}
		}
	}
}

func TestNobodyMayDoWhatIsNotInTheTable(t *testing.T) {
	all := access.All
	if needs, own := access.OfRequest("triagemq:no-such-request"); all.Has(needs) || all.Has(own) {
		t.Error("a request that is not in the table is allowed")
	}
	if all.Has(access.OfRoute("noSuchRoute")) {
		t.Error("a route that is not in the table is allowed")
	}
}
