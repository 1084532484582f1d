package baton_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program that the README begins with is a program.
func TestTheReadmeCompiles(t *testing.T) {
	text := string(must[[]byte](t)(os.ReadFile("README.md")))
	_, rest, _ := strings.Cut(text, "```go\n")
	program, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("the README has no program")
	}
	file := filepath.Join(t.TempDir(), "main.go")
	write(t, file, program)
	if output, err := exec.Command("go", "vet", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
