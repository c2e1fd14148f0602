package main

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/outboxdb"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestOutboxCommands(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	run := func(args ...string) (string, error) {
		var out strings.Builder
		root := newRoot()
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append([]string{"outbox"}, args...))
		err := cli.Execute(t.Context(), root)
		return out.String(), err
	}
	want := func(part string, args ...string) {
		t.Helper()
		if out, err := run(args...); err != nil || !strings.Contains(out, part) {
			t.Errorf("%v: printed %q, want %q: %v", args, out, part, err)
		}
	}
	want("grant insert (id, job_type, payload, options) on jobweaver.outbox to \"the \"\"shop\"\"\";",
		"sql", "--enqueue-role", `the "shop"`)
	if _, err := run("list", url); err == nil || !strings.Contains(err.Error(), "outbox install") {
		t.Errorf("without an outbox: %v", err)
	}
	want("installed", "install", url)
	want("the outbox is empty", "list", url)

	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var id string
	if err := conn.QueryRow(t.Context(), `select jobweaver.enqueue('OWN', '1')`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	want(id, "list", url)
	want(id+"\n", "list", url, "-o", "name")
	reject(t, url)
	want("400 API.X: no", "list", url, "--rejected")
	want("1 rejected jobs wait again", "retry", url, id)
	want("the outbox is empty", "list", url, "--rejected")
	reject(t, url)
	want("1 rejected jobs are deleted", "discard", url, "--all")
	want("the outbox is empty", "list", url)
	for _, wrong := range [][]string{{"discard", url}, {"discard", url, id, "--all"}, {"retry", url, "x"}, {"install"}} {
		if _, err := run(wrong...); cli.CodeOf(err) != cli.ExitUsage {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

// reject makes a gateway refuse all waiting rows.
func reject(t *testing.T, url string) {
	t.Helper()
	outbox, err := outboxdb.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer outbox.Close()
	_, err = outbox.Take(t.Context(), false, 0, 10, func(_ context.Context, rows []outboxdb.Row) (outboxdb.Verdict, error) {
		no := map[int64]outboxdb.Rejection{}
		for _, r := range rows {
			no[r.Position] = outboxdb.Rejection{Status: 400, Code: "API.X", Message: "no"}
		}
		return outboxdb.Verdict{Rejected: no}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
