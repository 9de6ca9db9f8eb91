// SPDX-License-Identifier: Apache-2.0

package host

import (
	"runtime/debug"
	"testing"
)

func TestVersionSaysWhatItWasBuiltFrom(t *testing.T) {
	platform := []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"}}
	commit := append(platform, debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef"},
		debug.BuildSetting{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	for _, tt := range []struct {
		version  string
		settings []debug.BuildSetting
		want     string
	}{
		{"v1.2.3", commit, "v1.2.3, linux/arm64, go1.26"},
		{"(devel)", commit, "(development) 0123456789ab of 2026-01-02, changed since, linux/arm64, go1.26"},
		{"", platform, "(development), linux/arm64, go1.26"},
	} {
		info := &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: tt.version}, Settings: tt.settings}
		if got := versionOf(info); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.version, got, tt.want)
		}
	}
}
