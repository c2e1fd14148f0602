package proctree

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Background is the name under which Databases counts processes of PostgreSQL that have no session.
const Background = "background"

// Databases returns the processor time of a PostgreSQL server's living sessions by database, and of its other
// processes. It does not include sessions that have ended.
func Databases(postmaster int) map[string]time.Duration {
	used := map[string]time.Duration{}
	for _, p := range tree(postmaster) {
		if p.pid == postmaster {
			continue
		}
		title, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
		used[databaseOf(string(title))] += p.own
	}
	return used
}

// databaseOf reads a title such as "postgres: user database 127.0.0.1(1234) idle". Other processes have titles such as
// "postgres: walwriter".
func databaseOf(title string) string {
	fields := strings.Fields(title)
	if len(fields) < 4 || fields[0] != "postgres:" {
		return Background
	}
	if client := fields[3]; client == "[local]" || strings.HasSuffix(client, ")") {
		return fields[2]
	}
	return Background
}
