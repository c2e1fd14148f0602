package folderlock_test

import (
	"os/exec"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/infra/laptop/folderlock"
)

func TestOnlyOneHasAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := folderlock.Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := folderlock.Take(dir); err == nil {
		t.Error("two have it")
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
	lock, err = folderlock.Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

// A process that starts other programs meanwhile copies every open file for a moment.
func TestAFolderIsFreeAtOnceThoughProgramsAreStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var programs errgroup.Group
	for range 4 {
		programs.Go(func() error {
			for range 100 {
				if err := exec.Command("true").Run(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	done := make(chan error, 1)
	go func() { done <- programs.Wait() }()
	for n := 0; ; n++ {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			t.Logf("taken %d times", n)
			return
		default:
		}
		lock, err := folderlock.Take(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
