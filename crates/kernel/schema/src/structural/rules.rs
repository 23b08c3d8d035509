//! `x-kubernetes-validations`: rules in CEL.
//!
//! A rule sees the value it stands at as `self`, and on updates the value that was there before as `oldSelf`. Rules are
//! compiled when a definition is checked or, for one that was checked long ago, when the first object needs them.

mod check;
mod evaluate;

use std::sync::{Arc, OnceLock};

use fairway_text_cel::{DeclType, Env, Program, Type};
use serde_json::Value;

pub(super) use self::check::check;
pub(super) use self::evaluate::{Evaluation, Past};
use super::fieldpath;
use super::raw::Props;

/// The rules of one schema object.
#[derive(Debug)]
pub(super) struct RuleSet {
    rules: Box<[Rule]>,
    /// What CEL sees of the values; `None`: nothing, and the rules do not apply.
    decl: Option<Arc<DeclType>>,
    compiled: OnceLock<Box<[Compiled]>>,
}

/// One rule as written.
#[derive(Debug)]
struct Rule {
    rule: Box<str>,
    message: Box<str>,
    message_expression: Box<str>,
    reason: Reason,
    /// In the notation of field errors; empty: the value itself.
    field_path: Box<str>,
    optional_old_self: bool,
}

/// `reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

/// What became of a rule.
#[derive(Debug)]
struct Compiled {
    /// The error is what the author of the rule is told.
    rule: Result<Program, String>,
    /// `None`: there is none.
    message: Option<Result<Program, String>>,
    uses_old_self: bool,
}

impl RuleSet {
    /// The rules of a schema object, if it has any. `inherited` is what CEL sees of it by the rules of a schema
    /// further up.
    pub(super) fn parse(
        schema: &Value,
        inherited: Option<&Arc<DeclType>>,
        resource_root: bool,
    ) -> Option<Self> {
        let props = Props::of(schema)?;
        let rules: Box<[Rule]> = props
            .list("x-kubernetes-validations")
            .iter()
            .filter_map(|r| Rule::parse(r, props))
            .collect();
        if rules.is_empty() {
            return None;
        }
        let decl = inherited
            .cloned()
            .or_else(|| DeclType::from_json_schema(schema, resource_root || props.embedded()));
        Some(Self {
            rules,
            decl,
            compiled: OnceLock::new(),
        })
    }

    /// What CEL sees of the values.
    pub(super) fn decl(&self) -> Option<&Arc<DeclType>> {
        self.decl.as_ref()
    }

    fn compiled(&self, decl: &Arc<DeclType>) -> &[Compiled] {
        self.compiled
            .get_or_init(|| self.rules.iter().map(|rule| rule.compile(decl)).collect())
    }
}

impl Rule {
    fn parse(rule: &Value, schema: Props<'_>) -> Option<Self> {
        let props = Props::of(rule)?;
        let path = props.text("fieldPath");
        let field_path = fieldpath::resolve(schema, path, true)
            .map_or_else(|_| Box::default(), |r| r.path.as_str().into());
        Some(Self {
            rule: props.text("rule").into(),
            message: props.text("message").into(),
            message_expression: props.text("messageExpression").into(),
            reason: match props.text("reason") {
                "FieldValueForbidden" => Reason::Forbidden,
                "FieldValueRequired" => Reason::Required,
                "FieldValueDuplicate" => Reason::Duplicate,
                _ => Reason::Invalid,
            },
            field_path,
            optional_old_self: props.flag("optionalOldSelf"),
        })
    }

    fn compile(&self, decl: &Arc<DeclType>) -> Compiled {
        let env = Env::new().with_schema_variable("self", decl);
        let env = if self.optional_old_self {
            env.with_optional_schema_variable("oldSelf", decl)
        } else {
            env.with_schema_variable("oldSelf", decl)
        };
        let rule = compile_to(
            &env,
            &self.rule,
            &Type::Bool,
            "",
            "cel expression must evaluate to a bool",
        );
        let uses_old_self = rule
            .as_ref()
            .is_ok_and(|program| program.uses_variable("oldSelf"));
        let message = (!self.message_expression.is_empty()).then(|| {
            let wrong_type = "messageExpression must evaluate to a string";
            compile_to(
                &env,
                &self.message_expression,
                &Type::String,
                "messageExpression ",
                wrong_type,
            )
        });
        Compiled {
            rule,
            message,
            uses_old_self,
        }
    }

    /// How the rule is called in errors.
    fn name(&self) -> &str {
        if self.message.is_empty() {
            self.rule.trim()
        } else {
            self.message.trim()
        }
    }
}

fn compile_to(
    env: &Env,
    source: &str,
    result: &Type,
    what: &str,
    wrong_type: &str,
) -> Result<Program, String> {
    match env.compile(source) {
        Ok(program) if program.result_type() == result => Ok(program),
        Ok(_) => Err(wrong_type.to_owned()),
        Err(errors) => {
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            Err(format!("{what}compilation failed: {}", texts.join("\n")))
        }
    }
}
