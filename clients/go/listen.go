package baton

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"
)

// listen opens `host:port`, `unix:///path` or `unix:path`.
func listen(address string) (net.Listener, error) {
	path, isSocket := strings.CutPrefix(address, "unix:")
	if !isSocket {
		return net.Listen("tcp", address)
	}
	path = strings.TrimPrefix(path, "//")
	if err := removeStale(path); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	// In a pod the sidecar runs as another user of the volume's group.
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// removeStale removes the socket that a killed process left behind, and nothing else.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("baton: %s is no socket", path)
	}
	if living, err := net.DialTimeout("unix", path, time.Second); err == nil {
		_ = living.Close()
		return fmt.Errorf("baton: %s is in use", path)
	}
	return os.Remove(path)
}
