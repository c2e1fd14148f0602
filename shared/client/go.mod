module github.com/jobweaver/jobweaver/shared/client

go 1.26

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3
	github.com/google/uuid v1.6.0
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
	go.uber.org/goleak v1.3.0
	pgregory.net/rapid v1.3.0
)

require github.com/google/jsonschema-go v0.4.3
