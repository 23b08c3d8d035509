// Command generate evaluates the cases of ../cases.json with Kubernetes' own CEL environment and writes what it finds
// (result, errors, estimated and actual cost) to ../expected.json. Run it with `go run . ../cases.json > ../expected.json`
// after changing the cases; the tests need only the files.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

type group struct {
	Schema map[string]any `json:"schema"`
	Self   any            `json:"self"`
	Exprs  []string       `json:"exprs"`
}

type outcome struct {
	Expr         string `json:"expr"`
	CompileError string `json:"compileError,omitempty"`
	Type         string `json:"type,omitempty"`
	MinCost      uint64 `json:"minCost"`
	MaxCost      string `json:"maxCost,omitempty"`
	Cost         uint64 `json:"cost"`
	Error        string `json:"error,omitempty"`
	Result       any    `json:"result,omitempty"`
}

type sizes struct{ root *apiservercel.DeclType }

func (s sizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if len(node.Path()) == 0 {
		return nil
	}
	at := s.root
	for _, name := range node.Path()[1:] {
		switch name {
		case "@items", "@values":
			at = at.ElemType
		case "@keys":
			at = at.KeyType
		default:
			field, ok := at.Fields[name]
			if !ok {
				return nil
			}
			at = field.Type
		}
		if at == nil {
			return nil
		}
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(at.MaxElements)}
}

func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate { return nil }

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func show(value ref.Val) any {
	switch v := value.(type) {
	case types.Bool, types.Int, types.Double, types.String:
		return map[string]any{value.Type().TypeName(): v.Value()}
	case types.Uint:
		return map[string]any{"uint": fmt.Sprint(uint64(v))}
	default:
		return map[string]any{"other": value.Type().TypeName()}
	}
}

func run(env *cel.Env, estimator *library.CostEstimator, expr string, self ref.Val) (out outcome) {
	out.Expr = expr
	ast, issues := env.Compile(expr)
	if issues != nil {
		out.CompileError = issues.String()
		return
	}
	out.Type = cel.FormatCELType(ast.OutputType())
	estimate, err := env.EstimateCost(ast, estimator)
	fail(err)
	out.MinCost = estimate.Min
	out.MaxCost = fmt.Sprint(estimate.Max)
	program, err := env.Program(ast, cel.CostLimit(math.MaxInt64), cel.CostTracking(estimator))
	if err != nil {
		out.CompileError = err.Error()
		return
	}
	value, details, err := program.Eval(map[string]any{"self": self, "oldSelf": self})
	if details != nil && details.ActualCost() != nil {
		out.Cost = *details.ActualCost()
	}
	if err != nil {
		out.Error = err.Error()
		return
	}
	out.Result = show(value)
	return
}

func main() {
	data, err := os.ReadFile(os.Args[1])
	fail(err)
	var groups []group
	fail(json.Unmarshal(data, &groups))
	var all [][]outcome
	for _, g := range groups {
		raw, err := json.Marshal(g.Schema)
		fail(err)
		var external apiextensionsv1.JSONSchemaProps
		fail(json.Unmarshal(raw, &external))
		var internal apiextensions.JSONSchemaProps
		fail(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil))
		structural, err := schema.NewStructural(&internal)
		fail(err)
		decl := model.SchemaDeclType(structural, false).MaybeAssignTypeName("selfType")
		set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Extend(environment.VersionedOptions{
			IntroducedVersion: version.MajorMinor(1, 0),
			EnvOptions: []cel.EnvOption{
				cel.Variable("self", decl.CelType()),
				cel.Variable("oldSelf", decl.CelType()),
			},
			DeclTypes: []*apiservercel.DeclType{decl},
		})
		fail(err)
		estimator := &library.CostEstimator{SizeEstimator: sizes{decl}}
		self := common.UnstructuredToVal(normalise(g.Self), &model.Structural{Structural: structural})
		var outcomes []outcome
		for _, expr := range g.Exprs {
			outcomes = append(outcomes, run(set.NewExpressionsEnv(), estimator, expr, self))
		}
		all = append(all, outcomes)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	fail(encoder.Encode(all))
}

// normalise gives whole numbers the type that the API server gives them.
func normalise(value any) any {
	switch v := value.(type) {
	case float64:
		if v == math.Trunc(v) {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = normalise(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = normalise(v[k])
		}
	}
	return value
}
