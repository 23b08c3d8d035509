// Writes the baseline of the protobuf crate: for every kind of the table of messages a few objects, each as the body that
// a Go client sends and as the JSON that Go writes after reading that body. The objects are filled by reflection from a
// fixed sequence of numbers, so that the file is the same whenever it is made.
//
// Usage: main messages.facts baseline.zlib
package main

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"reflect"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// A sequence of numbers (splitmix64).
type numbers struct{ state uint64 }

func (n *numbers) next(below int) int {
	n.state += 0x9e3779b97f4a7c15
	z := n.state
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return int((z ^ (z >> 31)) % uint64(below))
}

// How much of an object is filled.
type filler struct {
	numbers
	// Of a hundred fields so many are set.
	percent int
	// How often a type may contain itself.
	within map[reflect.Type]int
}

var texts = []string{"a", "name", "x.y/z", "Grüße \"of\" \\ <ü>\n", "2", "true"}
var quantities = []string{"0", "100m", "1", "1536Mi", "1Gi", "1000m", "12e6", "-5", "123456789012", "0.5", "3k"}
var values = []string{`{"a":[1,2.5,{"b":null}]}`, `"text"`, `17`, `{}`, `[]`, `true`}

func (f *filler) text() string { return texts[f.next(len(texts))] }

func (f *filler) fill(v reflect.Value) {
	if v.Kind() == reflect.Struct {
		if f.within[v.Type()] > 1 {
			return
		}
		f.within[v.Type()]++
		defer func() { f.within[v.Type()]-- }()
	}
	switch target := v.Addr().Interface().(type) {
	case *metav1.TypeMeta:
		return
	case *metav1.Time:
		*target = metav1.Time{Time: time.Unix(int64(f.next(2_000_000_000)), int64(f.next(1_000_000_000)))}
		return
	case *metav1.MicroTime:
		*target = metav1.MicroTime{Time: time.Unix(int64(f.next(2_000_000_000)), int64(f.next(1_000_000_000)))}
		return
	case *resource.Quantity:
		*target = resource.MustParse(quantities[f.next(len(quantities))])
		return
	case *intstr.IntOrString:
		if f.next(2) == 0 {
			*target = intstr.FromInt32(int32(f.next(70000) - 100))
		} else {
			*target = intstr.FromString(f.text())
		}
		return
	case *runtime.RawExtension:
		target.Raw = []byte(values[f.next(len(values))])
		return
	case *metav1.FieldsV1:
		target.Raw = []byte(`{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`)
		return
	case *apiextensions.JSON:
		target.Raw = []byte(values[f.next(len(values))])
		return
	case *apiextensions.JSONSchemaPropsOrBool:
		target.Allows = f.next(2) == 0
		if f.next(2) == 0 {
			target.Schema = &apiextensions.JSONSchemaProps{}
			f.fill(reflect.ValueOf(target.Schema).Elem())
		}
		return
	case *apiextensions.JSONSchemaPropsOrArray:
		if f.next(2) == 0 {
			target.Schema = &apiextensions.JSONSchemaProps{}
			f.fill(reflect.ValueOf(target.Schema).Elem())
		} else {
			f.fill(reflect.ValueOf(&target.JSONSchemas).Elem())
		}
		return
	case *apiextensions.JSONSchemaPropsOrStringArray:
		if f.next(2) == 0 {
			target.Schema = &apiextensions.JSONSchemaProps{}
			f.fill(reflect.ValueOf(target.Schema).Elem())
		} else {
			f.fill(reflect.ValueOf(&target.Property).Elem())
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			if f.next(100) < f.percent {
				f.fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		// Beyond the limit a pointer stays unset; some point to zero values, which JSON shows.
		if v.Type().Elem().Kind() == reflect.Struct && f.within[v.Type().Elem()] > 1 {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		if f.next(10) > 0 {
			f.fill(v.Elem())
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(f.text())[:f.next(2)])
			return
		}
		length := f.next(3)
		v.Set(reflect.MakeSlice(v.Type(), length, length))
		for i := 0; i < length; i++ {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := f.next(3); i > 0; i-- {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString(f.text())
			f.fill(value)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(f.next(2) == 0)
	case reflect.Int32:
		v.SetInt(int64(int32(f.next(1 << 32))))
	case reflect.Int64:
		v.SetInt(int64(f.next(1<<62)) - 1<<61)
	case reflect.Float64:
		v.SetFloat(float64(f.next(2000)-1000) / float64(1+f.next(3)))
	default:
		panic(v.Type().String())
	}
}

// The kinds that the table of messages names.
func kinds(table string) []schema.GroupVersionKind {
	var found []schema.GroupVersionKind
	for _, line := range strings.Split(table, "\n") {
		_, kind, ok := strings.Cut(line, " kind=")
		if !ok {
			continue
		}
		kind = strings.Replace(kind, "*/", "apps/v1/", 1)
		at := strings.LastIndex(kind, "/")
		version, err := schema.ParseGroupVersion(kind[:at])
		check(err)
		found = append(found, version.WithKind(kind[at+1:]))
	}
	return found
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func write(out *bytes.Buffer, part []byte) {
	check(binary.Write(out, binary.LittleEndian, uint32(len(part))))
	out.Write(part)
}

func main() {
	all := runtime.NewScheme()
	check(scheme.AddToScheme(all))
	check(apiextensions.AddToScheme(all))
	check(apiregistration.AddToScheme(all))
	serializer := protobuf.NewSerializer(all, all)
	table, err := os.ReadFile(os.Args[1])
	check(err)
	var out bytes.Buffer
	for _, kind := range kinds(string(table)) {
		for variant, percent := range []int{0, 100, 100, 60} {
			if percent == 100 && strings.HasSuffix(kind.Kind, "List") {
				continue // The kind itself is there.
			}
			object, err := all.New(kind)
			check(err)
			hash := fnv.New64a()
			fmt.Fprintf(hash, "%v %d", kind, variant)
			f := filler{numbers{hash.Sum64()}, percent, map[reflect.Type]int{}}
			f.fill(reflect.ValueOf(object).Elem())
			object.GetObjectKind().SetGroupVersionKind(kind)
			var body bytes.Buffer
			check(serializer.Encode(object, &body))
			read, _, err := serializer.Decode(body.Bytes(), nil, nil)
			check(err)
			read.GetObjectKind().SetGroupVersionKind(kind)
			text, err := json.Marshal(read)
			check(err)
			write(&out, body.Bytes())
			write(&out, text)
		}
	}
	file, err := os.Create(os.Args[2])
	check(err)
	writer, err := zlib.NewWriterLevel(file, zlib.BestCompression)
	check(err)
	_, err = writer.Write(out.Bytes())
	check(err)
	check(writer.Close())
	check(file.Close())
	fmt.Printf("%d KB\n", out.Len()/1024)
}
