package strictjson

import (
	"iter"
	"strconv"
	"strings"
)

const (
	maxPath = 256 // bytes of a path in an answer
	maxName = 64  // bytes of one name in it
)

// Path appends names to a path: steps, 3 and url become steps[3].url. The names are the client's and can hold any
// character: odd ones are quoted, long ones cut.
func Path(path string, names iter.Seq[string]) string {
	for name := range names {
		if len(path) > maxPath {
			return path + "…"
		}
		path = Join(path, name)
	}
	return path
}

// Join appends one name to a path.
func Join(path, name string) string {
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "") + "…"
	}
	switch {
	case isIndex(name):
		return path + "[" + name + "]"
	case !IsPlain(name):
		return path + "[" + strconv.Quote(name) + "]"
	case path == "":
		return name
	default:
		return path + "." + name
	}
}

func isIndex(name string) bool {
	_, err := strconv.ParseUint(name, 10, 32)
	return err == nil
}

// IsPlain reports whether a name stands in a path without quotes.
func IsPlain(name string) bool {
	for _, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			c == '_' || c == '-' || c == '…') {
			return false
		}
	}
	return name != ""
}
