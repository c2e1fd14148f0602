package jobspec

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/jobweaver/jobweaver/shared/payloadschema"
)

// The built-in job types.
const (
	Simulation   = "SIMULATION" // its payload is read by ParseSimulation
	Email        = "EMAIL"
	Report       = "REPORT"
	External     = "EXTERNAL"
	FunctionCall = "FUNCTION"
	Alert        = "ALERT" // a notice of an alert
)

// Builtin lists the built-in job types.
func Builtin() []string { return []string{Simulation, Email, Report, External, FunctionCall, Alert} }

//go:embed schemas/*.json
var schemaFiles embed.FS

// PayloadSchema is the JSON Schema of a built-in job type's payload; nil for any other job type.
func PayloadSchema(jobType string) json.RawMessage {
	text, err := schemaFiles.ReadFile("schemas/" + strings.ToLower(jobType) + ".json")
	if err != nil || strings.ToUpper(jobType) != jobType {
		return nil
	}
	return text
}

// builtinSchema holds the compiled schema of each built-in job type but SIMULATION, whose own parser is much faster.
var builtinSchema = sync.OnceValue(func() map[string]*payloadschema.Schema {
	schemas := map[string]*payloadschema.Schema{}
	for _, jobType := range Builtin() {
		if jobType == Simulation {
			continue
		}
		schema, err := payloadschema.Compile(PayloadSchema(jobType))
		if err != nil { // a test compiles them all
			panic(fmt.Sprintf("schema of %s: %v", jobType, err))
		}
		schemas[jobType] = schema
	}
	return schemas
})
