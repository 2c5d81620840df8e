package config

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// field is one setting: a leaf of Config.
type field struct {
	path   string // as in "postgres.pools.inbox"
	allow  string
	secret bool
	value  reflect.Value
}

var durationType = reflect.TypeFor[time.Duration]()

// fields lists the settings of c in the order of the struct.
func fields(c *Config) []field { return appendFields(nil, "", reflect.ValueOf(c).Elem()) }

func appendFields(list []field, prefix string, v reflect.Value) []field {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		path := prefix + f.Tag.Get("yaml")
		if f.Type.Kind() == reflect.Struct {
			list = appendFields(list, path+".", v.Field(i))
			continue
		}
		list = append(list, field{path: path, allow: f.Tag.Get("allow"), secret: f.Tag.Get("secret") == "true", value: v.Field(i)})
	}
	return list
}

// env is the field's name in the environment.
func (f field) env() string {
	return "CMPPGW_" + strings.ToUpper(strings.ReplaceAll(f.path, ".", "_"))
}

// set reads text into the field; the error says what is wanted.
func (f field) set(text string) error {
	if f.value.Type() == durationType {
		d, err := time.ParseDuration(text)
		if err != nil || !strings.ContainsAny(text, "hmsuµn") {
			return fmt.Errorf("want a duration with its unit, as in 500ms or 10s")
		}
		f.value.SetInt(int64(d))
		return nil
	}
	switch f.value.Kind() { //nolint:exhaustive // the kinds that Config has
	case reflect.String:
		f.value.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("want true or false")
		}
		f.value.SetBool(b)
	case reflect.Int, reflect.Int32:
		n, err := strconv.ParseInt(text, 10, f.value.Type().Bits())
		if err != nil {
			return fmt.Errorf("want a whole number, allowed %s", f.allow)
		}
		f.value.SetInt(n)
	case reflect.Uint32:
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return fmt.Errorf("want a whole number, allowed %s", f.allow)
		}
		f.value.SetUint(n)
	default:
		return fmt.Errorf("kind %s is none a setting can have", f.value.Kind())
	}
	return nil
}

// shown is the value for people, secrets cut.
func (f field) shown() any {
	if f.secret && f.value.String() != "" {
		if u, err := url.Parse(f.value.String()); err == nil && u.Scheme != "" {
			return u.Redacted()
		}
		return "xxxxx"
	}
	if f.value.Type() == durationType {
		return time.Duration(f.value.Int()).String()
	}
	return f.value.Interface()
}

// Effective is the whole configuration as nested maps for people: durations as text, secrets cut.
func (c Config) Effective() map[string]any {
	out := make(map[string]any)
	for _, f := range fields(&c) {
		m := out
		keys := strings.Split(f.path, ".")
		for _, k := range keys[:len(keys)-1] {
			next, ok := m[k].(map[string]any)
			if !ok {
				next = make(map[string]any)
				m[k] = next
			}
			m = next
		}
		m[keys[len(keys)-1]] = f.shown()
	}
	return out
}
