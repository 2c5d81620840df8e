package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Load reads the file at path ("" = none) and the environment (as of os.Environ) over the defaults and validates the
// result. FaultsError in the configuration come as FaultsError, all at once; a file that cannot be read as another error.
//
// Every setting is CMPPGW_<SECTION>_<FIELD> in the environment, such as CMPPGW_POSTGRES_POOLS_INBOX. DATABASE_URL, REDIS_URL,
// REDIS_HOST and REDIS_PORT are understood too; the CMPPGW_ name wins. REDIS_HOST or REDIS_PORT alone override a redis.url
// of the file.
func Load(path string, environ []string) (Config, error) {
	c, lines, faults, err := read(path, environ)
	if err != nil {
		return Config{}, err
	}
	known := make(map[string]bool, len(faults)) // a value that cannot be read is reported once
	for _, f := range faults {
		known[f.Path] = true
	}
	if more, ok := errors.AsType[FaultsError](c.Validate()); ok {
		for _, f := range more {
			if line, ok := lines[f.Path]; ok {
				f.File, f.Line = path, line
			}
			if !known[f.Path] {
				faults = append(faults, f)
			}
		}
	}
	if len(faults) > 0 {
		slices.SortStableFunc(faults, func(a, b Fault) int { return a.Line - b.Line })
		return Config{}, faults
	}
	return c, nil
}

// read returns the configuration and the line of each path that the file has the last word on.
func read(path string, environ []string) (c Config, lines map[string]int, faults FaultsError, err error) {
	c = Default()
	byPath := make(map[string]field)
	for _, f := range fields(&c) {
		byPath[f.path] = f
	}
	lines = make(map[string]int)
	if path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return c, nil, nil, fmt.Errorf("configuration: %w", err)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(data, &doc); err != nil {
			return c, nil, nil, fmt.Errorf("configuration: %s: %w", path, err)
		}
		if len(doc.Content) > 0 {
			r := reader{file: path, fields: byPath, lines: lines}
			r.mapping("", doc.Content[0])
			faults = r.faults
		}
	}
	return c, lines, append(faults, environment(&c, byPath, environ, lines)...), nil
}

type reader struct {
	file   string
	fields map[string]field
	lines  map[string]int
	faults FaultsError
}

func (r *reader) fault(n *yaml.Node, path, value, want string) {
	r.faults = append(r.faults, Fault{File: r.file, Line: n.Line, Path: path, Value: value, Want: want})
}

func (r *reader) mapping(prefix string, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" { // a section without anything in it
		return
	}
	if n.Kind != yaml.MappingNode {
		r.fault(n, strings.TrimSuffix(prefix, "."), "", "want settings, as in key: value")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		path := prefix + key.Value
		if line, ok := r.lines[path]; ok {
			r.fault(key, path, "", fmt.Sprintf("given twice, first in line %d", line))
			continue
		}
		r.lines[path] = key.Line
		f, ok := r.fields[path]
		switch {
		case !ok && r.section(path):
			r.mapping(path+".", value)
		case !ok:
			r.fault(key, path, "", "no such setting")
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			r.fault(value, path, "", "want one value")
		case f.value.Kind() != reflect.String && value.Tag == "!!str" && value.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 && f.value.Type() != durationType:
			r.fault(value, path, fmt.Sprintf("%q", value.Value), "want it without quotes")
		default:
			if err := f.set(value.Value); err != nil {
				shown := fmt.Sprintf("%q", value.Value)
				if f.secret {
					shown = "xxxxx"
				}
				r.fault(value, path, shown, err.Error())
			}
		}
	}
}

func (r *reader) section(path string) bool {
	for p := range r.fields {
		if strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}

// environment applies the variables of environ and forgets the file's line of what they override.
func environment(c *Config, byPath map[string]field, environ []string, lines map[string]int) (faults FaultsError) {
	vars := make(map[string]string)
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			vars[k] = v
		}
	}
	byEnv := make(map[string]field, len(byPath))
	for _, f := range byPath {
		byEnv[f.env()] = f
	}
	set := func(name string, f field) bool {
		text, ok := vars[name]
		if !ok || text == "" && !strings.HasPrefix(name, "CMPPGW_") {
			return false
		}
		if err := f.set(text); err != nil {
			faults = append(faults, Fault{Path: name, Value: fmt.Sprintf("%q", text), Want: err.Error()})
		}
		delete(lines, f.path)
		return true
	}
	set("DATABASE_URL", byPath["postgres.url"])
	byURL := set("REDIS_URL", byPath["redis.url"])
	host := set("REDIS_HOST", byPath["redis.host"])
	port := set("REDIS_PORT", byPath["redis.port"])
	if (host || port) && !byURL {
		c.Redis.URL = ""
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if !strings.HasPrefix(name, "CMPPGW_") {
			continue
		}
		f, ok := byEnv[name]
		if !ok {
			faults = append(faults, Fault{Path: name, Want: "no such setting"})
			continue
		}
		set(name, f)
	}
	if own := vars["CMPPGW_REDIS_HOST"] + vars["CMPPGW_REDIS_PORT"]; own != "" && vars["CMPPGW_REDIS_URL"] == "" {
		c.Redis.URL = ""
	}
	return faults
}
