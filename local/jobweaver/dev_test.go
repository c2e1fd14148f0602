//go:build !nodev

package main

import (
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/local/dev"
)

// ux 2: a pause is kept in the folder, and the next run has jobs that never start.
func TestDevPrintsWhatAnEarlierRunHasPaused(t *testing.T) {
	g := newGateway(t, map[string]string{"GET /api/controls": `{"controls":[
		{"kind":"queue","name":"default","paused":true},{"kind":"type","name":"A","maxRunning":2}]}`})
	var out strings.Builder
	sayPaused(t.Context(), dev.Options{Out: &out, Dir: t.TempDir()}, g.URL)
	if out.String() != "queue default is paused; bin/jobweaver resume queue default\n" {
		t.Errorf("it printed %q", out.String())
	}
}
