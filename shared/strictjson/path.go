package strictjson

import (
	"iter"
	"strconv"
	"strings"
)

const (
	maxPath = 256 // the most bytes of a path in an answer
	maxName = 64  // the most bytes of one name in a path
)

// Path appends names to a path: steps, 3 and url become steps[3].url. The names come from the client and can contain
// any character: unusual names are quoted, and long ones are cut.
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

// IsPlain reports whether a name needs no quotes in a path.
func IsPlain(name string) bool {
	for _, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			c == '_' || c == '-' || c == '…') {
			return false
		}
	}
	return name != ""
}
