package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

type Case struct {
	Schema json.RawMessage
	Value  json.RawMessage
	Old    json.RawMessage
	Crd    json.RawMessage
}
type Out struct {
	Crd      []string
	Errors   []string
	Update   []string
	Pruned   interface{}
	Unknown  []string
	Default  interface{}
	Fail     string
	Structural []string
}

func texts(l field.ErrorList) []string {
	out := []string{}
	for _, e := range l {
		out = append(out, e.Error())
	}
	sort.Strings(out)
	return out
}

func parse(b []byte) interface{} {
	var v interface{}
	if err := utiljson.Unmarshal(b, &v); err != nil {
		panic(err)
	}
	return v
}

func one(c Case) (out Out) {
	defer func() {
		if r := recover(); r != nil {
			out = Out{Fail: fmt.Sprint(r)}
		}
	}()
	if len(c.Crd) > 0 && string(c.Crd) != "null" {
		in := &v1.CustomResourceDefinition{}
		if err := json.Unmarshal(c.Crd, in); err != nil {
			out.Fail = err.Error()
			return
		}
		v1.SetDefaults_CustomResourceDefinition(in)
		internal := &apiextensions.CustomResourceDefinition{}
		if err := v1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(in, internal, nil); err != nil {
			out.Fail = err.Error()
			return
		}
		out.Crd = texts(crdvalidation.ValidateCustomResourceDefinition(context.Background(), internal))
		return
	}
	ext := &v1.JSONSchemaProps{}
	if err := json.Unmarshal(c.Schema, ext); err != nil {
		out.Fail = err.Error()
		return
	}
	in := &apiextensions.JSONSchemaProps{}
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(ext, in, nil); err != nil {
		out.Fail = err.Error()
		return
	}
	s, err := schema.NewStructural(in)
	if err != nil {
		out.Fail = err.Error()
		return
	}
	out.Structural = texts(schema.ValidateStructural(nil, s))
	value := parse(c.Value)
	old := parse(c.Old)
	sv, _, err := validation.NewSchemaValidator(in)
	if err != nil {
		out.Fail = err.Error()
		return
	}
	run := func(new, old interface{}, update bool) []string {
		var errs field.ErrorList
		m, _ := new.(map[string]interface{})
		om, _ := old.(map[string]interface{})
		var opts []cel.Option
		if update {
			co := common.NewCorrelatedObject(new, old, &model.Structural{Structural: s})
			errs = append(errs, validation.ValidateCustomResourceUpdate(nil, new, old, sv, validation.WithRatcheting(co))...)
			opts = append(opts, cel.WithRatcheting(co))
		} else {
			errs = append(errs, validation.ValidateCustomResource(nil, new, sv)...)
		}
		errs = append(errs, objectmeta.Validate(nil, new, s, false)...)
		if !update || len(listtype.ValidateListSetsAndMaps(nil, s, om)) == 0 {
			errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s, m)...)
		}
		if v := cel.NewValidator(s, true, celconfig.PerCallLimit); v != nil {
			blocked := false
			for _, err := range errs {
				if err.Type == field.ErrorTypeNotSupported || err.Type == field.ErrorTypeRequired || err.Type == field.ErrorTypeTooLong || err.Type == field.ErrorTypeTooMany || err.Type == field.ErrorTypeTypeInvalid {
					blocked = true
				}
			}
			if blocked {
				errs = append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
			} else {
				e, _ := v.Validate(context.Background(), nil, s, new, old, celconfig.RuntimeCELCostBudget, opts...)
				errs = append(errs, e...)
			}
		}
		return texts(errs)
	}
	out.Errors = run(value, nil, false)
	out.Update = run(value, old, true)
	p := parse(c.Value)
	out.Unknown = pruning.PruneWithOptions(p, s, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	out.Pruned = p
	d := parse(c.Value)
	defaulting.PruneNonNullableNullsWithoutDefaults(d, s)
	defaulting.Default(d, s)
	out.Default = d
	return
}

func main() {
	sc := bufio.NewScanner(os.Stdin)
	sc.Buffer(make([]byte, 1<<20), 1<<26)
	enc := json.NewEncoder(os.Stdout)
	enc.SetEscapeHTML(false)
	for sc.Scan() {
		var c Case
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			panic(err)
		}
		enc.Encode(one(c))
	}
}
