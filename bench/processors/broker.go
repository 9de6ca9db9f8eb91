// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	speedHub       = "speed"
	wideHub        = "wide"
	widePartitions = 128
)

// brokerProcess is the real broker.
type brokerProcess struct {
	cmd  *exec.Cmd
	port string
}

// startBroker starts a broker with a hub for each run.
func startBroker(dir, binary string) (*brokerProcess, error) {
	var hubs strings.Builder
	hubs.WriteString("hubs:\n")
	for i, s := range scenarios {
		for j := range kinds {
			fmt.Fprintf(&hubs, "  - {name: %s, partitionCount: %d}\n", hubName(i, j), s.partitions)
		}
	}
	fmt.Fprintf(&hubs, "  - {name: %s, partitionCount: 16}\n", speedHub)
	fmt.Fprintf(&hubs, "  - {name: %s, partitionCount: %d}\n", wideHub, widePartitions)
	config := filepath.Join(dir, "triagemq.yaml")
	if err := os.WriteFile(config, []byte(hubs.String()), 0o644); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		return nil, err
	}
	b := &brokerProcess{port: port}
	b.cmd = exec.Command(binary, "serve", "--dev", "--data", filepath.Join(dir, "data"), "--config", config, "--listen", "127.0.0.1:"+port)
	logs, err := os.Create(filepath.Join(dir, "broker.log"))
	if err != nil {
		return nil, err
	}
	b.cmd.Stdout, b.cmd.Stderr = logs, logs
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	for range 200 {
		if resp, err := http.Get("http://127.0.0.1:" + port + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return b, nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.stop()
	return nil, fmt.Errorf("the broker does not get ready; see %s", logs.Name())
}

func (b *brokerProcess) stop() {
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	_ = b.cmd.Wait()
}

// connection is the emulators' well-known one.
func (b *brokerProcess) connection() string {
	return fmt.Sprintf("Endpoint=sb://127.0.0.1:%s;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true", b.port)
}
