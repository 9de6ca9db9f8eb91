// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/cli"
)

func TestVersion(t *testing.T) {
	var texts []string
	for _, args := range [][]string{{"version"}, {"--version"}} {
		var out, err bytes.Buffer
		if code := run(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &err}); code != 0 {
			t.Fatalf("%v: code %d, %s", args, code, err.String())
		}
		texts = append(texts, out.String())
	}
	if texts[0] != texts[1] || !strings.HasPrefix(texts[0], "triagemq ") || !strings.Contains(texts[0], "go1.") {
		t.Errorf("version: %q, --version: %q; want the same, with the version of Go", texts[0], texts[1])
	}
}
