package gateway_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// client sends requests to a gateway and checks every request and response against openapi.yaml.
type client struct {
	t    *testing.T
	base string
	key  string // an API key; empty: none
}

type response struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

type errorBody struct {
	Status    int               `json:"status"`
	ErrorCode apierror.Code     `json:"errorCode"`
	Message   string            `json:"message"`
	JobID     *uuid.UUID        `json:"jobId"`
	TraceID   uuid.UUID         `json:"traceId"`
	Details   []apierror.Detail `json:"details"`
}

func (c *client) get(path string, headers ...string) *response {
	c.t.Helper()
	return c.do(http.MethodGet, path, "", headers...)
}

func (c *client) post(path, body string, headers ...string) *response {
	c.t.Helper()
	return c.do(http.MethodPost, path, body, append([]string{"Content-Type", "application/json"}, headers...)...)
}

// do sends a request. headers are names and values in turn; an empty value removes a header.
func (c *client) do(method, path, body string, headers ...string) *response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Del(headers[i]); headers[i+1] != "" {
			req.Header[http.CanonicalHeaderKey(headers[i])] = []string{headers[i+1]}
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := readAnswer(res)
	if err != nil {
		c.t.Fatal(err)
	}
	r := &response{t: c.t, status: res.StatusCode, header: res.Header, body: b}
	c.check(req, body, r)
	return r
}

// readAnswer reads a body, and of a stream the first events, without ids.
func readAnswer(res *http.Response) (body []byte, err error) {
	if res.Header.Get("Content-Type") != "text/event-stream" || res.Request.Method == http.MethodHead {
		return io.ReadAll(res.Body)
	}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), ":") { // a comment: the stream waits for changes
			return body, nil
		}
		if !strings.HasPrefix(lines.Text(), "id:") {
			body = append(append(body, lines.Bytes()...), '\n')
		}
	}
	return nil, io.ErrUnexpectedEOF
}

// raw sends a request without a body, follows no redirect, and does not check the contract.
func (c *client) raw(method, path string) *response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return &response{t: c.t, status: res.StatusCode, header: res.Header, body: b}
}

// contract is openapi.yaml. kin-openapi finds the route and checks parameters and headers; it would compile the schema
// of a body again for each body.
type contract struct {
	routers.Router
	schemas *jsonschema.Compiler // of the whole document
	mu      sync.Mutex           // the compiler's
}

const contractURL = "schema:///openapi.json"

var openContract = sync.OnceValues(func() (*contract, error) {
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, err
	}
	text, err := doc.MarshalJSON()
	if err != nil {
		return nil, err
	}
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	schemas := jsonschema.NewCompiler()
	schemas.DefaultDraft(jsonschema.Draft2020)
	schemas.AssertFormat()
	return &contract{Router: router, schemas: schemas}, schemas.AddResource(contractURL, whole)
})

// checkBody checks a body, of one of the media types in content, whose place in the document is a JSON pointer.
func (c *contract) checkBody(place string, content openapi3.Content, header http.Header, body []byte) error {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("content type %q: %w", header.Get("Content-Type"), err)
	}
	if content[mediaType] == nil {
		mediaType = "*/*"
	}
	if content[mediaType] == nil {
		return fmt.Errorf("the contract has no content of type %s here", header.Get("Content-Type"))
	}
	if content[mediaType].Schema == nil {
		return nil
	}
	var value any = string(body)
	if mediaType == "application/json" || strings.HasSuffix(mediaType, "+json") {
		if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(body)); err != nil {
			return err
		}
	}
	schema, err := c.schema(place + "/content/" + pointer.Replace(mediaType) + "/schema")
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// schema compiles what is at a place of the document, and keeps it.
func (c *contract) schema(place string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.schemas.Compile(contractURL + place)
}

// pointer escapes a part of a JSON pointer in the fragment of a URL.
var pointer = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")

// check fails the test if a response does not match the contract, or if a request that does not match it is answered
// with a 2xx.
func (c *client) check(req *http.Request, body string, r *response) {
	c.t.Helper()
	if got := r.header.Get("X-Trace-Id"); uuid.Validate(got) != nil {
		c.t.Errorf("%s %s: X-Trace-Id %q", req.Method, req.URL.Path, got)
	}
	if r.status >= 400 && req.URL.Path != "/api/health" {
		c.checkError(req, r)
	}
	if r.header.Get("Content-Type") == "application/problem+json" {
		return // not in the contract: for a response with two media types, oapi-codegen's client reads neither with a charset
	}
	contract, err := openContract()
	if err != nil {
		c.t.Fatal(err)
	}
	asked := *req
	asked.URL.Host, asked.Host = "", ""
	alias := strings.HasPrefix(asked.URL.Path+"/", "/jobs/") || asked.URL.Path == "/actuator/health"
	alias = alias && r.status != http.StatusNotFound && !strings.Contains(req.Header.Get("Accept"), "text/html")
	if alias { // the request has the form of another system, the response that of this API
		to := *asked.URL
		to.Path, to.RawPath = "/api"+strings.TrimPrefix(to.Path, "/actuator"), ""
		asked.URL = &to
	}
	route, params, err := contract.FindRoute(&asked)
	if err != nil {
		refused := r.status == http.StatusNotFound || r.status == http.StatusMethodNotAllowed || r.status == http.StatusBadRequest
		page := strings.HasPrefix(req.URL.Path, "/assets/") || req.URL.Path == "/favicon.svg" || strings.Contains(req.Header.Get("Accept"), "text/html") // a browser requests a page
		if !refused && !page && req.Method != http.MethodHead {                                                                                          // like GET
			c.t.Errorf("%s %s is not in the contract, and answers %d", req.Method, req.URL.Path, r.status)
		}
		return
	}
	for name, value := range params { // the router does not unescape them
		if plain, err := url.PathUnescape(value); err == nil {
			params[name] = plain
		}
	}
	in := &openapi3filter.RequestValidationInput{Request: &asked, PathParams: params, Route: route,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, SkipSettingDefaults: true, ExcludeRequestBody: true,
			ExcludeResponseBody: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}}
	place := "#/paths/" + pointer.Replace(route.Path) + "/" + strings.ToLower(route.Method)
	err = openapi3filter.ValidateRequest(c.t.Context(), in)
	if wanted := route.Operation.RequestBody; err == nil && wanted != nil && (len(body) > 0 || wanted.Value.Required) {
		err = contract.checkBody(cmp.Or(wanted.Ref, place+"/requestBody"), wanted.Value.Content, req.Header, []byte(body))
	}
	if err != nil && r.status < 300 && !alias {
		c.t.Errorf("%s %s: answered %d to what the contract forbids: %v", req.Method, req.URL.Path, r.status, err)
	}
	if r.header.Get("Content-Encoding") == "gzip" && req.Method != http.MethodHead {
		r = &response{t: r.t, status: r.status, header: r.header, body: r.unzipped()}
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: r.status, Header: r.header,
		Options: in.Options}
	err = openapi3filter.ValidateResponse(c.t.Context(), out)
	status := strconv.Itoa(r.status)
	if has := route.Operation.Responses.Value(status); err == nil && has != nil && len(has.Value.Content) > 0 &&
		req.Method != http.MethodHead && (req.Header.Get("Prefer") == "" || len(r.body) > 0) {
		err = contract.checkBody(cmp.Or(has.Ref, place+"/responses/"+status), has.Value.Content, r.header, r.body)
	}
	if err != nil {
		c.t.Errorf("%s %s: the answer %d breaks the contract: %v\n%s", req.Method, req.URL.Path, r.status, err, r.body)
	}
}

func (c *client) checkError(req *http.Request, r *response) {
	c.t.Helper()
	e := r.error()
	if e.Status != r.status || e.ErrorCode == "" || e.Message == "" || e.Details == nil ||
		e.TraceID.String() != r.header.Get("X-Trace-Id") {
		c.t.Errorf("%s %s: error body of a %d: %s", req.Method, req.URL.Path, r.status, r.body)
	}
	if (r.status == http.StatusServiceUnavailable || r.status == http.StatusTooManyRequests) != (r.header.Get("Retry-After") != "") {
		c.t.Errorf("%s %s: %d with Retry-After %q", req.Method, req.URL.Path, r.status, r.header.Get("Retry-After"))
	}
}

func (r *response) want(status int) *response {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("answered %d, want %d: %.1000s", r.status, status, r.body)
	}
	return r
}

// wantError also checks the error code, and the paths in the details.
func (r *response) wantError(code apierror.Code, paths ...string) {
	r.t.Helper()
	e := r.error()
	if r.status != apierror.New(code, "").Status() || e.ErrorCode != code {
		r.t.Errorf("answered %d %s, want %s: %.1000s", r.status, e.ErrorCode, code, r.body)
		return
	}
	for _, path := range paths {
		found := false
		for _, d := range e.Details {
			found = found || d.Path == path
		}
		if !found {
			r.t.Errorf("no detail names %q: %.1000s", path, r.body)
		}
	}
}

func (r *response) error() (e errorBody) {
	r.t.Helper()
	r.into(&e)
	return e
}

func (r *response) into(v any) {
	r.t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		r.t.Fatalf("read answer %d: %v: %.1000s", r.status, err, r.body)
	}
}

func (r *response) jobID() uuid.UUID {
	r.t.Helper()
	var body struct {
		JobID uuid.UUID `json:"jobId"`
	}
	r.into(&body)
	return body.JobID
}
