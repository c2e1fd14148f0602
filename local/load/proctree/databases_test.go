package proctree

import "testing"

func TestSessionsAreDistinguishedFromOtherProcessesByTheirTitles(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{
		"postgres: owner jobweaver_api 127.0.0.1(46116) idle": "jobweaver_api",
		"postgres: owner river_bench [local] SELECT":          "river_bench",
		"postgres: walwriter ":                                Background,
		"postgres: autovacuum worker jobweaver_api":           Background,
		"/usr/lib/postgresql/18/bin/postgres -D data":         Background,
		"": Background,
	} {
		if got := databaseOf(title); got != want {
			t.Errorf("%q is of %s, want %s", title, got, want)
		}
	}
}
