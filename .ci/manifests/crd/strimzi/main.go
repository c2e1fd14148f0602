// Command strimzi generates those of Strimzi's CustomResourceDefinitions that our manifests use, from Strimzi's own
// classes and as its build does. It writes them without their descriptions, one a line. It needs Maven and Java 21
// (JAVA names it).
//
// Its output, strimzi-<version>.jsonl, is Strimzi's work, under the Apache License 2.0.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

const version = "1.2.0" // of pom.xml too

var classes = map[string]string{
	"kafka":    "io.strimzi.api.kafka.model.kafka.Kafka",
	"nodepool": "io.strimzi.api.kafka.model.nodepool.KafkaNodePool",
	"user":     "io.strimzi.api.kafka.model.user.KafkaUser",
}

func main() {
	if err := inTemporary(func(folder string) error { return generate(folder, "strimzi-"+version+".jsonl") }); err != nil {
		slog.Error("no definitions were written", "error", err)
		os.Exit(1)
	}
}

func inTemporary(do func(folder string) error) error {
	folder, err := os.MkdirTemp("", "strimzi")
	if err != nil {
		return err
	}
	return errors.Join(do(folder), os.RemoveAll(folder))
}

func generate(folder, name string) error {
	jars := filepath.Join(folder, "jars")
	if err := run("mvn", "-q", "dependency:copy-dependencies", "-DoutputDirectory="+jars); err != nil {
		return err
	}
	java := os.Getenv("JAVA")
	if java == "" {
		java = "java"
	}
	args := []string{"-cp", filepath.Join(jars, "*"), "io.strimzi.crdgenerator.CrdGenerator", "--yaml"}
	for kind, class := range classes {
		args = append(args, class+"="+filepath.Join(folder, kind+".yaml"))
	}
	if err := run(java, args...); err != nil {
		return err
	}
	var lines bytes.Buffer
	for _, kind := range []string{"kafka", "nodepool", "user"} {
		file, err := os.ReadFile(filepath.Join(folder, kind+".yaml"))
		if err != nil {
			return err
		}
		var definition any
		if err := yaml.Unmarshal(file, &definition); err != nil {
			return err
		}
		line, err := json.Marshal(terse(definition))
		if err != nil {
			return err
		}
		lines.Write(append(line, '\n'))
	}
	return os.WriteFile(name, lines.Bytes(), 0o644)
}

// terse removes descriptions. It keeps a field that is named description, whose value is a schema and not a text.
func terse(node any) any {
	switch node := node.(type) {
	case map[string]any:
		if _, described := node["description"].(string); described {
			delete(node, "description")
		}
		for name, child := range node {
			node[name] = terse(child)
		}
	case []any:
		for i, child := range node {
			node[i] = terse(child)
		}
	}
	return node
}

func run(name string, args ...string) error {
	command := exec.Command(name, args...)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	return command.Run()
}
