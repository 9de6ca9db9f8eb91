// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"os"
	"testing"

	"github.com/triagemq/triagemq/triagetest"
)

// connectionString leads to the broker that the Examples manage.
var connectionString string

func TestMain(m *testing.M) { os.Exit(triagetest.Main(m, "", &connectionString)) }
