package mcptools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// toolContract has the parts of an OpenAPI 3.1 document from which tools are made. Its schemas are used unchanged as
// JSON Schemas.
type toolContract struct {
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components struct {
		Parameters map[string]toolParameter `json:"parameters"`
		Schemas    map[string]any           `json:"schemas"`
	} `json:"components"`
}

type toolParameter struct {
	Ref         string `json:"$ref"`
	Name        string `json:"name"`
	In          string `json:"in"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Schema      any    `json:"schema"`
}

type toolOperation struct {
	OperationID string          `json:"operationId"`
	Summary     string          `json:"summary"`
	Description string          `json:"description"`
	Role        string          `json:"x-role"`
	Parameters  []toolParameter `json:"parameters"`
	RequestBody *struct {
		Required bool `json:"required"`
		Content  map[string]struct {
			Schema any `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]struct{} `json:"content"`
	} `json:"responses"`
}

// tool is an operation of the API. Its arguments are the parameters by name, and the JSON of the body as "body".
type tool struct {
	name, summary, description string
	method, path, contentType  string
	in                         map[string]string // argument → "path", "query" or "body"
	schema                     map[string]any
}

var toolMethods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// bodyArgument is the name of the argument that holds the body of a request. No parameter has this name.
const bodyArgument = "body"

// tools returns the operations under /api that return JSON and need the role read; with write, also those that need
// submit or operate. It leaves out operations for admins, such as those that create keys or read the audit log.
func (c *toolContract) tools(write bool) ([]*tool, error) {
	roles := map[string]bool{"read": true, "submit": write, "operate": write}
	var tools []*tool
	for _, path := range slices.Sorted(maps.Keys(c.Paths)) {
		shared, err := c.parametersOf(c.Paths[path]["parameters"])
		if err != nil {
			return nil, fmt.Errorf("read %s of the contract: %w", path, err)
		}
		for _, method := range toolMethods {
			raw, ok := c.Paths[path][strings.ToLower(method)]
			if !ok || !strings.HasPrefix(path, "/api/") {
				continue
			}
			var of toolOperation
			if err := json.Unmarshal(raw, &of); err != nil {
				return nil, fmt.Errorf("read %s %s of the contract: %w", method, path, err)
			}
			isHealth := path == "/api/health" // public, and an agent needs it first
			if !roles[of.Role] && !isHealth || !of.answersJSON() {
				continue
			}
			of.Parameters = append(slices.Clone(shared), of.Parameters...)
			tools = append(tools, c.tool(method, path, &of))
		}
	}
	if len(tools) == 0 {
		return nil, errors.New("the contract has no operation that can be a tool: is the URL that of a gateway?")
	}
	return tools, nil
}

func (c *toolContract) parametersOf(raw json.RawMessage) (of []toolParameter, err error) {
	if raw == nil {
		return nil, nil
	}
	return of, json.Unmarshal(raw, &of)
}

// answersJSON reports whether an operation returns JSON or no body. It is false for streams and files.
func (o *toolOperation) answersJSON() bool {
	for status, response := range o.Responses {
		_, isJSON := response.Content["application/json"]
		if strings.HasPrefix(status, "2") && (isJSON || len(response.Content) == 0) {
			return true
		}
	}
	return false
}

func (c *toolContract) tool(method, path string, of *toolOperation) *tool {
	t := &tool{
		name: of.OperationID, summary: of.Summary, description: strings.TrimSpace(of.Summary + ". " + of.Description),
		method: method, path: path, in: map[string]string{},
	}
	properties, required := map[string]any{}, []string{}
	for _, p := range of.Parameters {
		if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
			p = c.Components.Parameters[name]
		}
		if p.In != "path" && p.In != "query" {
			continue // headers are for programs
		}
		t.in[p.Name] = p.In
		properties[p.Name] = map[string]any{"description": p.Description, "allOf": []any{p.Schema}}
		if p.Required {
			required = append(required, p.Name)
		}
	}
	if of.RequestBody != nil {
		for contentType, content := range of.RequestBody.Content {
			if t.contentType == "" || contentType == "application/json" {
				t.contentType, properties[bodyArgument] = contentType, content.Schema
			}
		}
		t.in[bodyArgument] = bodyArgument
		if of.RequestBody.Required {
			required = append(required, bodyArgument)
		}
	}
	t.schema = c.selfContained(map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	})
	return t
}

// selfContained replaces references to components of the contract by references to definitions in the schema itself.
func (c *toolContract) selfContained(schema map[string]any) map[string]any {
	const components, definitions = "#/components/schemas/", "#/$defs/"
	found := map[string]any{}
	var walk func(any) any
	walk = func(node any) any {
		switch node := node.(type) {
		case map[string]any:
			walked := make(map[string]any, len(node))
			for key, value := range node {
				if ref, ok := value.(string); key == "$ref" && ok && strings.HasPrefix(ref, components) {
					name := strings.TrimPrefix(ref, components)
					if _, ok := found[name]; !ok {
						found[name] = nil // a schema may refer to itself
						found[name] = walk(c.Components.Schemas[name])
					}
					value = definitions + name
				}
				walked[key] = walk(value)
			}
			return walked
		case []any:
			walked := make([]any, len(node))
			for i, value := range node {
				walked[i] = walk(value)
			}
			return walked
		}
		return node
	}
	whole, _ := walk(schema).(map[string]any)
	if len(found) > 0 {
		whole["$defs"] = found
	}
	return whole
}

// harmless are the tools that change something and neither overwrite nor end anything. A tool of a new operation counts
// as destructive until it stands here.
var harmless = []string{
	"submitJob", "submitJobs", "createBatch", "createFlow", "createSchedule", "runSchedule", "runJobAgain",
	"retryJob", "retryBatch", "retryDelivery", "pauseControl", "resumeControl", "pauseSchedule", "resumeSchedule",
	"createAlert", "pauseAlert", "resumeAlert", "testAlert",
}

// destroys reports whether the tool may do something that no other call can undo.
func (t *tool) destroys() bool {
	return t.method != http.MethodGet && !slices.Contains(harmless, t.name)
}

// request makes the path with its query, and the body, from arguments.
func (t *tool) request(arguments json.RawMessage) (path string, body []byte, err error) {
	given := map[string]json.RawMessage{}
	if len(arguments) > 0 {
		if err := json.Unmarshal(arguments, &given); err != nil {
			return "", nil, fmt.Errorf("read arguments: %w", err)
		}
	}
	path, query := t.path, url.Values{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if t.in[name] == bodyArgument {
			body = given[name]
			continue
		}
		values, err := textsOf(given[name])
		switch {
		case err != nil:
			return "", nil, fmt.Errorf("argument %s: %w", name, err)
		case t.in[name] == "path" && len(values) == 1 && values[0] != "":
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(values[0]))
		case t.in[name] == "query":
			query[name] = values
		case t.in[name] == "":
			return "", nil, fmt.Errorf("there is no argument %s; there are %s", name,
				strings.Join(slices.Sorted(maps.Keys(t.in)), ", "))
		}
	}
	if _, missing, ok := strings.Cut(path, "{"); ok {
		missing, _, _ = strings.Cut(missing, "}")
		return "", nil, fmt.Errorf("argument %s is missing", missing)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, body, nil
}

// textsOf returns the values of an argument in a query: a list is given several times, null is left out.
func textsOf(value json.RawMessage) ([]string, error) {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		list = []json.RawMessage{value}
	}
	texts := make([]string, 0, len(list))
	for _, item := range list {
		var text string
		switch err := json.Unmarshal(item, &text); {
		case bytes.Equal(bytes.TrimSpace(item), []byte("null")):
			continue
		case err != nil && (item[0] == '{' || item[0] == '['):
			return nil, errors.New("must be a text, a number, true, false or a list of these")
		case err != nil:
			text = string(item)
		}
		texts = append(texts, text)
	}
	return texts, nil
}
