// SPDX-License-Identifier: Apache-2.0

//go:build unix

package program

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// firstLine is how much of a file the kernel reads to find its interpreter.
const firstLine = 256

// maxInterpreters bounds how many interpreters lead to a program, as the kernel does.
const maxInterpreters = 4

// binfmt is where Linux lists formats of programs beside its own.
const binfmt = "/proc/sys/fs/binfmt_misc"

// checkStart returns why a program cannot be started in a directory, as far as that shows
// without starting it. A relative path begins in the directory.
func checkStart(path, dir string) error {
	if dir != "" {
		switch info, err := os.Stat(dir); {
		case err != nil:
			return fmt.Errorf("working directory: %w", err)
		case !info.IsDir():
			return fmt.Errorf("working directory: %q is not a directory", dir)
		}
	}
	return checkFile(path, dir, maxInterpreters)
}

// checkFile checks a program, and the interpreter that its first line names.
func checkFile(path, dir string, interpreters int) error {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%q is not a file", path)
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil {
		return fmt.Errorf("%q cannot be executed: %w", path, err)
	}
	begin, err := readBegin(path)
	if err != nil {
		return nil // a program that may be executed and not read
	}
	rest, isScript := bytes.CutPrefix(begin, []byte("#!"))
	if !isScript {
		return checkFormat(path, begin)
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	name, _, _ := bytes.Cut(bytes.Trim(line, " \t"), []byte(" "))
	name, _, _ = bytes.Cut(name, []byte("\t"))
	if interpreters == 0 {
		return fmt.Errorf("%q has an interpreter that has too many itself", path)
	}
	if err := checkFile(string(name), dir, interpreters-1); err != nil {
		return fmt.Errorf("%q names the interpreter %q: %w", path, name, err)
	}
	return nil
}

// readBegin returns the first bytes of a file.
func readBegin(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	begin := make([]byte, firstLine)
	n, err := io.ReadFull(f, begin)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return begin[:n], nil
}

// checkFormat refuses a text without an interpreter, which shells run and kernels do not,
// unless the machine may have a format for it.
func checkFormat(path string, begin []byte) error {
	if bytes.IndexByte(begin, 0) >= 0 {
		return nil
	}
	switch formats, err := os.ReadDir(binfmt); {
	case err == nil && len(formats) > 2: // "register", "status" and formats
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("%q has no interpreter: its first line must begin with #!, as in #!/bin/sh", path)
}
