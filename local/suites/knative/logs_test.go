package knative

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// readLogs looks in the functions' logs for errors, and for lines that are not log lines, such as a panic. If the
// test has failed it shows the warnings too.
func (h *fixture) readLogs() {
	files, err := filepath.Glob(filepath.Join(h.dir, "*.log"))
	if err != nil || len(files) == 0 {
		h.t.Errorf("no logs, %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			h.t.Error(err)
		}
		for line := range strings.Lines(string(text)) {
			var entry struct{ Level string }
			err := json.Unmarshal([]byte(line), &entry)
			switch {
			case err != nil || entry.Level == "ERROR":
				h.t.Errorf("%s: %s", filepath.Base(file), line)
			case entry.Level != "INFO" && h.t.Failed():
				h.t.Logf("%s: %s", filepath.Base(file), line)
			}
		}
	}
}
