package envsettings

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// shortName is how long a setting's name must be for two typing errors to leave it recognizable.
	shortName = 8
	maxErrors = 2
)

// WarnOfNearMisses logs the variables of the environment that are not a setting of any function but look like one:
// otherwise AUHT=off would leave AUTH on unnoticed. It shows no values.
func WarnOfNearMisses(ctx context.Context) {
	if found := NearMisses(os.Environ()); len(found) > 0 {
		telemetry.Logger(ctx).WarnContext(ctx, "unknown environment variables read like settings, and have no effect",
			"variables", found)
	}
}

// NearMisses returns such variables, each with the setting that it resembles.
func NearMisses(environ []string) (found []string) {
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if likely := likelySetting(name); likely != "" {
			found = append(found, name+" (did you mean "+likely+"?)")
		}
	}
	slices.Sort(found)
	return found
}

// likelySetting returns the setting that a name was probably meant to be; empty: the name is a setting, or resembles
// none. The first letter must be right: SSL_CERT_FILE, OAUTH and TRACE are variables of other programs.
func likelySetting(name string) (likely string) {
	base, ofFile := strings.CutSuffix(name, "_FILE")
	if name == "" || isSetting(name) || ofFile && isSetting(base) {
		return ""
	}
	least := maxErrors + 1
	for _, setting := range allSettings {
		for _, known := range []string{setting, setting + "_FILE"} {
			errors := typingErrors(name, known)
			if known[0] == name[0] && errors < least && (errors == 1 || len(setting) >= shortName) {
				likely, least = known, errors
			}
		}
	}
	return likely
}

func isSetting(name string) bool {
	_, is := slices.BinarySearch(allSettings, name)
	return is
}

// typingErrors returns the optimal string alignment distance, which counts letters left out, added, replaced, or
// swapped with the next. If it exceeds maxErrors, the result may be any number above.
func typingErrors(a, b string) int {
	if max(len(a), len(b))-min(len(a), len(b)) > maxErrors {
		return maxErrors + 1
	}
	var before, last []int // the two rows above
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
