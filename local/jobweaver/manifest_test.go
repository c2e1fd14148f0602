package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestClusterJobsUseExistingCommands(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../knative/common/jobs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lists := regexp.MustCompile(`args: \[(.*)\]`).FindAllStringSubmatch(string(text), -1)
	if len(lists) != 2 {
		t.Fatalf("%d Jobs give arguments", len(lists))
	}
	for _, list := range lists {
		args := strings.Split(list[1], ", ")
		command, flags, err := newRoot().Find(args)
		if err == nil {
			err = command.ParseFlags(flags)
		}
		if err != nil || !command.Runnable() {
			t.Errorf("jobweaver %s: %v", strings.Join(args, " "), err)
		}
	}
}
