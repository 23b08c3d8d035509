//! `x-kubernetes-validations`: rules in CEL.

use serde_json::Value;

/// The rules of one schema object.
#[derive(Debug)]
pub(super) struct RuleSet {
    pub(super) rules: Box<[Rule]>,
}

/// One rule as written.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) rule: Box<str>,
    pub(super) message: Box<str>,
    pub(super) message_expression: Box<str>,
    pub(super) reason: Reason,
    pub(super) field_path: Box<str>,
    pub(super) optional_old_self: bool,
}

/// `reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

impl RuleSet {
    /// The rules of a schema object, if it has any.
    pub(super) fn parse(schema: &Value) -> Option<Self> {
        let rules: Box<[Rule]> = schema
            .get("x-kubernetes-validations")?
            .as_array()?
            .iter()
            .map(|rule| {
                let text = |field: &str| Box::from(rule.get(field).and_then(Value::as_str).unwrap_or(""));
                Rule {
                    rule: text("rule"),
                    message: text("message"),
                    message_expression: text("messageExpression"),
                    reason: match &*text("reason") {
                        "FieldValueForbidden" => Reason::Forbidden,
                        "FieldValueRequired" => Reason::Required,
                        "FieldValueDuplicate" => Reason::Duplicate,
                        _ => Reason::Invalid,
                    },
                    field_path: text("fieldPath"),
                    optional_old_self: rule
                        .get("optionalOldSelf")
                        .and_then(Value::as_bool)
                        .unwrap_or(false),
                }
            })
            .collect();
        (!rules.is_empty()).then_some(Self { rules })
    }
}
