// SPDX-License-Identifier: Apache-2.0

//go:build linux

package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/triagemq/triagemq/test/process"
)

// namespaced is the environment variable that says that this binary may mount.
const namespaced = "TRIAGEMQ_DISK_NAMESPACE"

// cannotMount is the exit status of a process in a namespace that may not mount.
const cannotMount = 77

// errNoMount says why the tests cannot run; nil if they can.
var errNoMount error

func TestMain(m *testing.M) {
	if os.Getenv(namespaced) == "" {
		code, err := runNamespaced()
		if err == nil {
			os.Exit(code)
		}
		errNoMount = err
	} else if err := probe(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(cannotMount)
	}
	process.Main(m)
}

// runNamespaced runs this binary again in a mount namespace, and returns its exit
// status, or why there can be no such thing. Root needs no user namespace, and can
// mount more without.
func runNamespaced() (int, error) {
	runtime.LockOSThread() // the child is to end with this thread
	if os.Geteuid() == 0 {
		code, err := runWith(&syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS})
		if err == nil {
			return code, nil
		}
	}
	code, err := runWith(&syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWUSER,
		Unshareflags: syscall.CLONE_NEWNS,
		UidMappings:  []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings:  []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	})
	if err == nil {
		return code, nil
	}
	return 0, fmt.Errorf("file systems cannot be mounted here, nor in a user namespace: %w", err)
}

func runWith(attr *syscall.SysProcAttr) (int, error) {
	attr.Pdeathsig = syscall.SIGKILL
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), namespaced+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = attr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == cannotMount:
		return 0, errors.New("the kernel does not allow to mount")
	case errors.As(err, &exit):
		return max(1, exit.ExitCode()), nil
	case err != nil:
		return 0, err
	}
	return 0, nil
}

// probe mounts something and unmounts it.
func probe() error {
	dir, err := os.MkdirTemp("", "triagemq-disk-")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
		return err
	}
	return syscall.Unmount(dir, 0)
}

// needMounts skips a test that the kernel does not allow.
func needMounts(t *testing.T) {
	t.Helper()
	if errNoMount != nil {
		t.Skip(errNoMount)
	}
}

// disk is a small file system.
type disk struct {
	t    *testing.T
	dir  string // where it is mounted
	size int64
	full string // name of the file with which another process fills it; empty if there is none
}

// newDisk mounts a file system of size bytes.
func newDisk(t *testing.T, size int64) *disk {
	t.Helper()
	d := &disk{t: t, dir: t.TempDir(), size: size}
	if err := mountImage(t.TempDir(), d.dir, size); err != nil {
		t.Logf("tmpfs instead of ext4: %v", err)
		if err := syscall.Mount("none", d.dir, "tmpfs", 0, fmt.Sprint("size=", size)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return d
}

// mountImage makes a file with an ext4 file system in a directory and mounts it.
func mountImage(in, at string, size int64) error {
	image := filepath.Join(in, "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(image, size); err != nil {
		return err
	}
	for _, args := range [][]string{{"mkfs.ext4", "-q", "-F", image}, {"mount", "-t", "ext4", "-o", "loop", image, at}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w %s", args[0], err, out)
		}
	}
	return nil
}

// used returns how many bytes of the disk are taken.
func (d *disk) used() int64 {
	d.t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(d.dir, &st); err != nil {
		d.t.Fatal(err)
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize
}

// take simulates another process that uses a random part of the free space, or
// with the argument 1 every block.
func (d *disk) take(part float64) {
	d.t.Helper()
	if d.full != "" {
		d.giveBack()
	}
	d.full = filepath.Join(d.dir, "other")
	f, err := os.Create(d.full)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close() // nothing was written to it
	end := int64(0)
	limit := int64(float64(d.size-d.used()) * part)
	for step := int64(64 << 20); step >= 512; {
		if part < 1 && end+step > limit {
			step /= 2
			continue
		}
		switch err := syscall.Fallocate(int(f.Fd()), 0, end, step); err {
		case nil:
			end += step
		case syscall.ENOSPC:
			step /= 2
		case syscall.EINTR:
		default:
			d.t.Fatalf("fill the disk: %v", err)
		}
	}
}

// takeSome simulates another process that uses a random part of the free space.
func (d *disk) takeSome() { d.take(0.1 + 0.8*rand.Float64()) }

// giveBack frees the space that the other process has used.
func (d *disk) giveBack() {
	d.t.Helper()
	if d.full == "" {
		return
	}
	if err := os.Remove(d.full); err != nil {
		d.t.Fatal(err)
	}
	d.full = ""
}
