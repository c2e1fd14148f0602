package gateway

import (
	_ "embed"
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

const yamlType = "application/yaml"
