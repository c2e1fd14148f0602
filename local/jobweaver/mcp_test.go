package main

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/local/jobweaver/mcptools"
)

// newAgent connects to a tool server of a gateway that has the real contract and returns these answers.
func newAgent(t *testing.T, write bool, answers map[string]string) (*gateway, *mcp.ClientSession) {
	t.Helper()
	contract, err := os.ReadFile("../../functions/gateway/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"GET /api/openapi.json": string(contract)}
	for path, answer := range answers {
		all[path] = answer
	}
	g := newGateway(t, all)
	server, err := mcptools.NewServer(t.Context(), cli.NewClient(g.URL, ""), write)
	if err != nil {
		t.Fatal(err)
	}
	near, far := mcp.NewInMemoryTransports()
	if _, err := server.Connect(t.Context(), near, nil); err != nil {
		t.Fatal(err)
	}
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "agent"}, nil).Connect(t.Context(), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Close() })
	g.asked = nil
	return g, agent
}

func toolsOf(t *testing.T, agent *mcp.ClientSession) map[string]*mcp.Tool {
	t.Helper()
	list, err := agent.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	tools := map[string]*mcp.Tool{}
	for _, tool := range list.Tools {
		tools[tool.Name] = tool
	}
	return tools
}

func TestAgentsGetReadOnlyToolsUnlessWriteIsAllowed(t *testing.T) {
	_, reader := newAgent(t, false, nil)
	_, writer := newAgent(t, true, nil)
	read, all := toolsOf(t, reader), toolsOf(t, writer)
	for _, name := range []string{"listJobs", "getJob", "getLogs", "getStats", "getHealth", "listWorkers", "listDeadJobs"} {
		if read[name] == nil || all[name] == nil {
			t.Errorf("there is no tool %s", name)
		}
	}
	for name, tool := range read {
		if !tool.Annotations.ReadOnlyHint || *tool.Annotations.DestructiveHint {
			t.Errorf("%s reads, but its annotations are %+v", name, tool.Annotations)
		}
	}
	harmless := strings.Fields(`submitJob submitJobs createBatch createFlow createSchedule runSchedule runJobAgain
		retryJob retryBatch retryDelivery pauseControl resumeControl pauseSchedule resumeSchedule createAlert pauseAlert resumeAlert testAlert`)
	for _, name := range slices.Concat(harmless, strings.Fields("cancelJob cancelBatch cancelFlow deleteJob changeJob putSchedule putControl startOperation")) {
		if all[name] == nil {
			t.Errorf("with --write there is no tool %s", name)
		}
	}
	for name, tool := range all {
		if read[name] != nil {
			continue
		}
		if tool.Annotations.ReadOnlyHint || *tool.Annotations.DestructiveHint == slices.Contains(harmless, name) {
			t.Errorf("with --write %s is %+v", name, tool.Annotations)
		}
	}
	for name := range all {
		if strings.Contains(name, "Key") || strings.Contains(name, "Audit") || strings.Contains(name, "Secret") || name == "streamJobs" {
			t.Errorf("%s is offered to agents", name)
		}
	}
}

func TestSchemaOfEachToolIsSelfContained(t *testing.T) {
	_, agent := newAgent(t, true, nil)
	for name, tool := range toolsOf(t, agent) {
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource("tool.json", tool.InputSchema); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		schema, err := compiler.Compile("tool.json")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := schema.Validate(map[string]any{"noSuchArgument": 1}); err == nil {
			t.Errorf("%s takes any argument", name)
		}
		if tool.Description == "" || tool.Title == "" {
			t.Errorf("%s has no description", name)
		}
	}
}

func TestToolCallsTheAPI(t *testing.T) {
	g, agent := newAgent(t, true, map[string]string{
		"GET /api/jobs/a/b?": `{"jobId":"a/b?"}`, "GET /api/jobs": `{"jobs":[]}`, "POST /api/jobs": `{"jobId":"j1"}`,
		"GET /api/stats": `"` + strings.Repeat("x", mcptools.MaxToolAnswer) + `"`, "DELETE /api/schedules/nightly": "",
	})
	for name, c := range map[string]struct {
		tool, arguments string
		asked, answer   string // answer: a part of it
		failed          bool
	}{
		"a path":          {"getJob", `{"jobId":"a/b?"}`, "GET /api/jobs/a%2Fb%3F", `{"jobId":"a/b?"}`, false},
		"a list":          {"listJobs", `{"status":["FAILED","CANCELLED"],"limit":5,"q":null}`, "GET /api/jobs?limit=5&status=FAILED&status=CANCELLED", `{"jobs":[]}`, false},
		"nothing":         {"listJobs", `{}`, "GET /api/jobs", `{"jobs":[]}`, false},
		"a body":          {"submitJob", `{"body":{"jobType":"T","payload":{}}}`, "POST /api/jobs", `{"jobId":"j1"}`, false},
		"no answer":       {"deleteSchedule", `{"name":"nightly"}`, "DELETE /api/schedules/nightly", "done", false},
		"a refusal":       {"getJob", `{"jobId":"j2"}`, "GET /api/jobs/j2", "API.JOB_NOT_FOUND", true},
		"too much":        {"getStats", `{}`, "GET /api/stats", "ask for less", true},
		"no id":           {"getJob", `{}`, "", "argument jobId is missing", true},
		"an empty id":     {"getJob", `{"jobId":""}`, "", "argument jobId is missing", true},
		"an unknown name": {"listJobs", `{"state":"FAILED"}`, "", "there is no argument state; there are", true},
		"an object":       {"listJobs", `{"limit":{"is":5}}`, "", "argument limit: must be", true},
	} {
		g.asked = nil
		result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: json.RawMessage(c.arguments)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := result.Content[0].(*mcp.TextContent).Text
		if result.IsError != c.failed || !strings.Contains(text, c.answer) {
			t.Errorf("%s: answer %q, failed %t", name, text, result.IsError)
		}
		if asked := strings.Join(g.asked, ","); asked != c.asked {
			t.Errorf("%s: asked %q, not %q", name, asked, c.asked)
		}
		if name == "a body" && string(g.body) != `{"jobType":"T","payload":{}}` {
			t.Errorf("sent %s", g.body)
		}
	}
}

func TestMCPServesOnStandardInputAndOutputUntilTheAgentDisconnects(t *testing.T) {
	newAgent(t, false, nil) // sets JOBWEAVER_URL
	in, asks := io.Pipe()
	answers, out := io.Pipe()
	root := newRoot()
	root.SetIn(in)
	root.SetOut(out)
	root.SetArgs([]string{"mcp"})
	ended := make(chan error, 1)
	go func() { ended <- cli.Execute(t.Context(), root) }()
	if _, err := io.WriteString(asks, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+
		`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	var answer struct {
		ID     int
		Result struct{ ServerInfo struct{ Name string } }
	}
	if err := json.NewDecoder(answers).Decode(&answer); err != nil || answer.ID != 1 || answer.Result.ServerInfo.Name != "jobweaver" {
		t.Errorf("answered %+v, %v", answer, err)
	}
	_ = asks.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestMCPWithoutAGatewayDoesNotStart(t *testing.T) {
	t.Setenv("JOBWEAVER_URL", "http://127.0.0.1:1")
	if _, err := run(t, "", "mcp"); cli.CodeOf(err) != cli.ExitUnreached {
		t.Errorf("ended with %v", err)
	}
	newGateway(t, map[string]string{"GET /api/openapi.json": `{}`})
	if _, err := run(t, "", "mcp"); err == nil || !strings.Contains(err.Error(), "is the URL that of a gateway?") {
		t.Errorf("another server: %v", err)
	}
}
