package admin

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"cmppgateway/gateway/internal/manage"
)

// openAPI is the document of the API (OpenAPI 3.1), made of the same declarations that the server runs on.
func openAPI() []byte {
	schemas := map[string]any{"problem": problemSchema()}
	paths := map[string]map[string]any{}
	for _, r := range routes() {
		if r.out != nil {
			schemas[r.out.Name] = schemaOf(r.out.Fields, shown)
		}
		if r.in != nil && r.out != nil && r.method == "POST" {
			schemas[r.out.Name+"-new"] = schemaOf(r.in, asNew)
		}
		if paths[r.path] == nil {
			paths[r.path] = map[string]any{}
		}
		paths[r.path][strings.ToLower(r.method)] = operation(&r)
	}
	raw, err := json.MarshalIndent(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "CMPP gateway administration", "version": "1",
			"description": "Money is in 1/10,000 yuan, times are UTC. Every operation names the roles that may use it. A refusal is a problem with every fault at once.",
		},
		"paths": paths,
		"components": map[string]any{
			"schemas":         schemas,
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}},
		},
		"security": []any{map[string]any{"token": []string{}}},
	}, "", " ")
	if err != nil {
		panic(err) // maps of texts and numbers cannot fail
	}
	return append(raw, '\n')
}

type use int

const (
	shown use = iota // in an answer
	asNew            // in the body that makes a row
	some             // in the body that changes some fields
)

// schemaOf is the schema of an object with those of the fields that the use has.
func schemaOf(fields []manage.Field, u use) map[string]any {
	properties := map[string]any{}
	required := []string{}
	for i := range fields {
		f := &fields[i]
		switch {
		case u == shown && (f.Secret || f.Hidden), u != shown && f.ReadOnly, u == some && f.Fixed:
			continue
		case u == shown, u == asNew && f.Required:
			required = append(required, f.Name)
		}
		properties[f.Name] = property(f, u)
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func property(f *manage.Field, u use) map[string]any {
	p := maps.Clone(f.Type.Schema())
	if f.Doc != "" {
		if d, ok := p["description"].(string); ok {
			p["description"] = f.Doc + " (" + d + ")"
		} else {
			p["description"] = f.Doc
		}
	}
	if u == asNew && f.Default != nil {
		p["default"] = f.Default
	}
	if f.Secret {
		p["writeOnly"] = true
	}
	if f.Null || u == shown && f.ReadOnly {
		return map[string]any{"anyOf": []any{p, map[string]any{"type": "null"}}}
	}
	return p
}

func operation(r *route) map[string]any {
	op := map[string]any{
		"summary": r.summary, "operationId": strings.ToLower(r.method) + strings.NewReplacer("/", "-", "{", "", "}", "").Replace(strings.TrimPrefix(r.path, strings.TrimSuffix(prefix, "/"))),
		"x-roles": strings.Split(r.roles.String(), ","), "responses": responses(r),
	}
	if p := parameters(r); len(p) > 0 {
		op["parameters"] = p
	}
	switch {
	case r.lines != "":
		op["requestBody"] = map[string]any{"required": true, "content": map[string]any{"text/plain": map[string]any{"schema": map[string]any{
			"type": "string", "description": "lines of " + r.lines,
		}}}}
	case r.in != nil:
		u := asNew
		if r.merge {
			u = some
		}
		op["requestBody"] = content(schemaOf(r.in, u))
	}
	return op
}

func content(schema map[string]any) map[string]any {
	return map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": schema}}}
}

func parameters(r *route) (list []any) {
	for _, p := range r.params() {
		list = append(list, map[string]any{"name": p, "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
	}
	for i := range r.query {
		list = append(list, map[string]any{"name": r.query[i].Name, "in": "query", "required": false, "schema": property(&r.query[i], some)})
	}
	if r.list {
		list = append(list,
			map[string]any{"name": "limit", "in": "query", "required": false, "schema": map[string]any{"type": "integer", "minimum": 1, "maximum": pageMax, "default": pageDefault}},
			map[string]any{"name": "after", "in": "query", "required": false, "schema": map[string]any{"type": "string", "description": "next of the page before"}})
	}
	if r.write != nil {
		list = append(list, map[string]any{
			"name": "Idempotency-Key", "in": "header", "required": r.moneyKey, "schema": map[string]any{"type": "string", "maxLength": keyMax},
			"description": "the same key with the same request gets the same answer, with another one 409; kept for a week, for money for ever",
		})
	}
	if r.ifMatch {
		list = append(list, map[string]any{"name": "If-Match", "in": "header", "required": true, "schema": map[string]any{"type": "string"}, "description": "the ETag that was read, or *"})
	}
	return list
}

func responses(r *route) map[string]any {
	refused := content(map[string]any{"$ref": "#/components/schemas/problem"})
	refused["content"] = map[string]any{"application/problem+json": map[string]any{"schema": map[string]any{"$ref": "#/components/schemas/problem"}}}
	refused["description"] = "refused, with every fault"
	ok := map[string]any{"description": r.summary}
	var schema map[string]any
	switch {
	case r.list:
		schema = map[string]any{
			"type": "object", "required": []string{"items", "next"},
			"properties": map[string]any{
				"items": map[string]any{"type": "array", "items": map[string]any{"$ref": "#/components/schemas/" + r.out.Name}},
				"next":  map[string]any{"type": "string", "description": `"" at the end`},
			},
		}
	case r.out != nil && r.outputs == nil:
		schema = map[string]any{"$ref": "#/components/schemas/" + r.out.Name}
	case r.out != nil || r.outputs != nil:
		properties := map[string]any{}
		if r.out != nil {
			maps.Copy(properties, schemaOf(r.out.Fields, shown)["properties"].(map[string]any)) // schemaOf made it
		}
		for i := range r.outputs {
			properties[r.outputs[i].Name] = property(&r.outputs[i], some)
		}
		schema = map[string]any{"type": "object", "properties": properties}
	}
	if schema != nil {
		maps.Copy(ok, content(schema))
	}
	return map[string]any{strconv.Itoa(r.status): ok, "default": refused}
}

func problemSchema() map[string]any {
	str := map[string]any{"type": "string"}
	return map[string]any{
		"type": "object", "required": []string{"type", "title", "status", "code", "detail"},
		"properties": map[string]any{
			"type": str, "title": str, "status": map[string]any{"type": "integer"}, "code": map[string]any{"type": "string", "enum": codes}, "detail": str,
			"faults": map[string]any{"type": "array", "items": map[string]any{
				"type": "object", "required": []string{"field", "value", "allowed"}, "properties": map[string]any{"field": str, "value": map[string]any{}, "allowed": str},
			}},
		},
	}
}
