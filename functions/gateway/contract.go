package gateway

import (
	_ "embed"
	"sync"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
)

//go:generate go test -run TestTheReferenceIsMadeFromTheContract -update

var (
	//go:embed openapi.yaml
	contractYAML []byte
	//go:embed openapi.json
	contractJSON []byte // made from openapi.yaml, as reference.html is
	//go:embed reference.html
	referenceHTML []byte
)

// contractPages are the contract's three forms. To hash them takes longer than the rest of making a gateway.
var contractPages = sync.OnceValue(func() (pages struct{ yaml, json, reference edge.Static }) {
	pages.yaml = edge.NewStatic("application/yaml", contractYAML)
	pages.json = edge.NewStatic(edge.JSONType, contractJSON)
	pages.reference = edge.NewPage(referenceHTML)
	return pages
})
