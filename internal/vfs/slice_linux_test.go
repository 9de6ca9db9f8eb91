// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestShortSliceIsUndone(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attributes := func() unix.SchedAttr {
		t.Helper()
		a, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return *a
	}
	before := attributes()
	p := requestShortSlice()
	during := attributes()
	p.restore()
	if after := attributes(); after != before {
		t.Errorf("after: %+v, before: %+v", after, before)
	}
	if during.Nice != before.Nice || during.Policy != before.Policy {
		t.Errorf("more than the slice was changed: from %+v to %+v", before, during)
	}
	// Before 6.12 the kernel accepts the request and ignores it.
	if during.Runtime != shortSlice && during.Runtime != before.Runtime {
		t.Errorf("slices of %d ns, want %d or, in an old kernel, %d", during.Runtime, shortSlice, before.Runtime)
	}
}
