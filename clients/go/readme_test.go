package baton_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The programs of the README compile: the first one alone, because it is a whole program, then all of them together.
func TestTheReadmeCompiles(t *testing.T) {
	text, dir := string(must[[]byte](t)(os.ReadFile("README.md"))), t.TempDir()
	files := []string{"vet"}
	for number, part := range strings.Split(text, "```go\n")[1:] {
		program, _, found := strings.Cut(part, "```\n")
		if !found {
			t.Fatal("a program of the README does not end")
		}
		file := filepath.Join(dir, fmt.Sprintf("part%d.go", number))
		write(t, file, program)
		files = append(files, file)
		if output, err := exec.Command("go", files...).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, output)
		}
	}
	if len(files) < 2 {
		t.Fatal("the README has no program")
	}
}
