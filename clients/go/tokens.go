package baton

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// For this long after a change the token before it is accepted too: the two sides do not read their files at the
// same instant, and a run refused as UNAUTHENTICATED has failed for good.
const previousAccepted = time.Minute

// tokenFile is the token of one direction, read again when its file changes. A file that cannot be read, or holds no
// line of printable ASCII, keeps its last token; an empty token opens nothing.
type tokenFile struct {
	path  string
	clock func() time.Duration
	log   *slog.Logger

	mu              sync.Mutex
	seen            os.FileInfo
	token, previous []byte
	changedAt       time.Duration
}

// openToken reads a token that must be there; no path is no token, which is nil.
func openToken(path string, log *slog.Logger) (*tokenFile, error) {
	if path == "" {
		return nil, nil
	}
	file := &tokenFile{path: path, clock: boottime, log: log}
	if err := file.reread(); err != nil {
		return nil, fmt.Errorf("baton: token: %w", err)
	}
	if len(file.token) == 0 {
		return nil, fmt.Errorf("baton: token: %s is empty, or no line of printable ASCII", path)
	}
	return file, nil
}

// current is the token as the file has it now.
func (f *tokenFile) current() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	return string(f.token)
}

// accepts takes the same time however wrong the token is.
func (f *tokenFile) accepts(token string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	matches := subtle.ConstantTimeCompare([]byte(token), f.token)
	if len(f.previous) > 0 && f.clock()-f.changedAt < previousAccepted {
		matches |= subtle.ConstantTimeCompare([]byte(token), f.previous)
	}
	return matches == 1
}

func (f *tokenFile) refresh() {
	if err := f.reread(); err != nil {
		f.log.Warn("token file cannot be read", "error", err)
	}
}

func (f *tokenFile) reread() error {
	info, err := os.Stat(f.path)
	if err != nil || unchanged(f.seen, info) {
		return err
	}
	token, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	f.seen = info
	if token = bytes.TrimSpace(token); isSendable(token) && !bytes.Equal(token, f.token) {
		f.previous, f.token, f.changedAt = f.token, token, f.clock()
	}
	return nil
}

// isSendable tells whether gRPC can carry a token.
func isSendable(token []byte) bool {
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	return len(token) > 0 && bytes.IndexFunc(token, unprintable) < 0
}

func unchanged(before, now os.FileInfo) bool {
	return before != nil && os.SameFile(before, now) &&
		before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
}
