//! The public door: an environment compiles expressions to programs, and programs run.

use std::sync::Arc;

use crate::activation::Activation;
use crate::checker::{Declarations, Variable, check};
use crate::cost::estimate::{CostEstimate, estimate};
use crate::decl::DeclType;
use crate::error::Error;
use crate::eval::run;
use crate::functions::Library;
use crate::meter::Meter;
use crate::parser::{ParseOptions, parse};
use crate::plan::{Plan, plan};
use crate::source::{CompileError, error_at};
use crate::types::Type;
use crate::value::Value;

/// What expressions may refer to: Kubernetes' libraries, and the variables that the caller declares.
#[derive(Clone, Debug, Default)]
pub struct Env {
    declarations: Declarations,
    options: ParseOptions,
}

impl Env {
    /// Kubernetes 1.36's libraries and no variables.
    pub fn new() -> Env {
        Env::default()
    }

    /// Switches on a library that Kubernetes leaves out.
    pub fn with_library(mut self, library: Library) -> Env {
        match library {
            Library::Bindings => self.options.bindings = true,
            Library::Math => self.options.math = true,
            Library::Encoders | Library::JsonPatch | Library::StringsLatest => {}
        }
        self.declarations.libraries.push(library);
        self
    }

    /// Allows lists and maps whose elements have several types; they become `dyn`.
    pub fn with_mixed_literals(mut self) -> Env {
        self.declarations.mixed_literals = true;
        self
    }

    /// Declares a variable. Names may have dots, as `authorizer.requestResource` has.
    pub fn with_variable(mut self, name: &str, ty: Type) -> Env {
        self.declarations
            .variables
            .insert(name.into(), Variable { ty, decl: None });
        self
    }

    /// Declares a variable by its schema, which also bounds the sizes that costs are estimated from.
    pub fn with_schema_variable(mut self, name: &str, decl: &Arc<DeclType>) -> Env {
        let variable = Variable {
            ty: decl.cel_type().clone(),
            decl: Some(decl.clone()),
        };
        self.declarations.variables.insert(name.into(), variable);
        self
    }

    /// Declares an optional variable by its schema, as `oldSelf` is with `optionalOldSelf`.
    pub fn with_optional_schema_variable(mut self, name: &str, decl: &Arc<DeclType>) -> Env {
        let variable = Variable {
            ty: Type::optional(decl.cel_type().clone()),
            decl: Some(decl.clone()),
        };
        self.declarations.variables.insert(name.into(), variable);
        self
    }

    /// Parses and checks an expression.
    pub fn compile(&self, source: &str) -> Result<Program, Vec<CompileError>> {
        let parsed = parse(source, self.options).map_err(|error| vec![error])?;
        let checked = check(source, &parsed.root, parsed.ids, &self.declarations)?;
        let plan = plan(&parsed.root, &checked)
            .map_err(|(position, message)| vec![error_at(source, position, message)])?;
        let estimate = estimate(&parsed.root, &checked, &self.declarations);
        let result_type = checked
            .types
            .get(parsed.root.id as usize)
            .cloned()
            .unwrap_or(Type::Dyn);
        Ok(Program {
            inner: Arc::new(Compiled {
                source: source.into(),
                plan,
                result_type,
                estimate,
            }),
        })
    }

    /// Compiles an expression whose result must be of one of the given types.
    pub fn compile_expecting(&self, source: &str, results: &[Type]) -> Result<Program, Vec<CompileError>> {
        let program = self.compile(source)?;
        if results.contains(program.result_type()) {
            return Ok(program);
        }
        let names: Vec<String> = results.iter().map(Type::to_string).collect();
        let message = format!("must evaluate to {}", names.join(" or "));
        Err(vec![CompileError {
            line: 1,
            column: 1,
            message,
            snippet: "".into(),
        }])
    }
}

/// A compiled expression; cheap to clone and to keep.
#[derive(Clone)]
pub struct Program {
    inner: Arc<Compiled>,
}

struct Compiled {
    source: Box<str>,
    plan: Plan,
    result_type: Type,
    estimate: CostEstimate,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("source", &self.inner.source)
            .finish_non_exhaustive()
    }
}

impl Program {
    /// The type of the result.
    pub fn result_type(&self) -> &Type {
        &self.inner.result_type
    }

    /// Whether the expression refers to a variable; a rule that uses `oldSelf` is a transition rule.
    pub fn uses_variable(&self, name: &str) -> bool {
        self.inner
            .plan
            .variables
            .iter()
            .any(|variable| &**variable == name)
    }

    /// The expression as it was written.
    pub fn source(&self) -> &str {
        &self.inner.source
    }

    /// What evaluation may cost, judged from the schema's size bounds.
    pub fn estimate_cost(&self) -> CostEstimate {
        self.inner.estimate
    }
}

/// Evaluates a program. The cost is taken off `budget`; when it does not suffice, evaluation stops with
/// [`Error::CostExceeded`] and the budget is zero.
pub fn eval<'a>(
    program: &Program,
    activation: &Activation<'a>,
    budget: &mut u64,
) -> Result<Value<'a>, Error> {
    let meter = Meter::new(*budget);
    let result = run(&program.inner.plan, activation, &meter);
    *budget = if matches!(result, Err(Error::CostExceeded)) {
        0
    } else {
        meter.left()
    };
    result
}
