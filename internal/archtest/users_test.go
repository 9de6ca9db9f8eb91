// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A program that imports only the packages for users builds none of what the server
// needs. The go.mod of the one module lists more; a user's go.sum gets the lines of what
// is built only.
func TestUsersBuildNoDependencyOfTheServer(t *testing.T) {
	for _, c := range []struct {
		packages []string
		want     []string // modules
	}{
		{[]string{"client", "client/admin", "worker", "processor"}, []string{"github.com/Azure/go-amqp", "github.com/coder/websocket", module}},
		// Blobs are what the processors of the SDKs share.
		{[]string{"processor/blobstore"}, []string{
			"github.com/Azure/azure-sdk-for-go/sdk/azcore", "github.com/Azure/azure-sdk-for-go/sdk/internal", "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob",
			"github.com/Azure/go-amqp", "github.com/coder/websocket", module, "golang.org/x/net", "golang.org/x/text",
		}},
		// To suspend programs takes calls that package syscall does not have.
		{[]string{"worker/program"}, []string{"github.com/Azure/go-amqp", "github.com/coder/websocket", module, "golang.org/x/sys"}},
	} {
		args := []string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}
		for _, p := range c.packages {
			args = append(args, module+"/"+p)
		}
		out, err := exec.CommandContext(t.Context(), "go", args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(out)))))
		if !slices.Equal(got, c.want) {
			t.Errorf("%v build the modules %q, want %q", c.packages, got, c.want)
		}
	}
}
