// Package envsettings reads settings from the environment, and finds variables that were probably meant as settings.
package envsettings

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/kelseyhightower/envconfig"

	"github.com/jobweaver/jobweaver/shared/secret"
)

// Load reads the environment into a pointer to a struct whose fields have envconfig tags. Instead of a setting <NAME>
// with one or more texts, also secret ones, the environment may have <NAME>_FILE, which names a file with the value;
// several texts may stand on a line each. A field with the tag infile gets the path, after the tag's value, in place of
// the content: its user reads the file whenever it needs the value. An error begins with the setting's name.
func Load(cfg any) error {
	err := envconfig.Process("", cfg)
	if bad := (*envconfig.ParseError)(nil); errors.As(err, &bad) {
		return fmt.Errorf("%s: %q %s", bad.KeyName, bad.Value, mustBe(bad))
	}
	if err != nil {
		return fmt.Errorf("read environment: %w", err)
	}
	return loadFiles(reflect.ValueOf(cfg).Elem())
}

func mustBe(bad *envconfig.ParseError) string {
	switch {
	case errors.Is(bad.Err, strconv.ErrRange):
		return "is out of range"
	case bad.TypeName == "time.Duration":
		return "must be a duration such as 30s"
	case bad.TypeName == "bool":
		return "must be true or false"
	case strings.HasPrefix(bad.TypeName, "int"):
		return "must be a whole number"
	case strings.HasPrefix(bad.TypeName, "float"):
		return "must be a number"
	}
	return "is no " + bad.TypeName
}

// loadFiles fills the settings whose values are in files.
func loadFiles(cfg reflect.Value) error {
	fields, live := map[string]reflect.Value{}, map[string]string{}
	for i := range cfg.NumField() {
		tag := cfg.Type().Field(i).Tag
		fields[tag.Get("envconfig")], live[tag.Get("envconfig")] = cfg.Field(i), tag.Get("infile")
	}
	for name, field := range fields {
		path, given := os.LookupEnv(name + "_FILE")
		if _, own := fields[name+"_FILE"]; name == "" || !given || own || !isText(field) {
			continue
		}
		if os.Getenv(name) != "" {
			return fmt.Errorf("%s: is set, and so is %s_FILE", name, name)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s_FILE: %w", name, err)
		}
		value := strings.TrimRight(string(text), "\r\n")
		if live[name] != "" && value != "" {
			value = live[name] + path
		}
		setText(field, value)
	}
	return nil
}

func isText(field reflect.Value) bool {
	kind := field.Type()
	if kind.Kind() == reflect.Slice {
		kind = kind.Elem()
	}
	return kind.Kind() == reflect.String || kind == secretText
}

var secretText = reflect.TypeFor[secret.Text]()

// setText splits texts at commas, as in a variable, and at the ends of lines.
func setText(field reflect.Value, text string) {
	switch {
	case field.Type() == secretText:
		field.Set(reflect.ValueOf(secret.Of(text)))
		return
	case field.Kind() == reflect.String:
		field.SetString(text)
		return
	}
	texts := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' })
	field.Set(reflect.MakeSlice(field.Type(), len(texts), len(texts)))
	for i, one := range texts {
		setText(field.Index(i), one)
	}
}
