//! What a policy's status says: `Accepted`, and if it is, `Enforced`, in Kuadrant's words.

use std::fmt;

use fairway_gateway_routes::table::RuleKey;

use crate::effective::{Refusal, Standing};
use crate::object::{Kind, PolicyKey};

/// A condition without its times; whoever writes it keeps those of one that has not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// `Accepted`, `Enforced`.
    pub r#type: &'static str,
    pub is_true: bool,
    pub reason: &'static str,
    pub message: String,
}

impl Condition {
    /// `True` or `False`.
    pub fn status(&self) -> &'static str {
        if self.is_true { "True" } else { "False" }
    }
}

/// What is wrong with a rule of a policy, found when the rule was compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where the rule comes from.
    pub policy: PolicyKey,
    /// The rule's name: `authorization#admins`.
    pub rule: String,
    pub what: Fault,
}

/// The kinds of wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// CEL that does not compile.
    Cel(String),
    /// Anything else that cannot be understood.
    Invalid(String),
    /// Kuadrant has it, and it is not served here.
    Unsupported(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.what {
            Fault::Cel(what) | Fault::Invalid(what) => what.clone(),
            Fault::Unsupported(what) => format!("{what} is not supported"),
        };
        write!(f, "{}: {what}", self.rule)
    }
}

/// What is known of the data plane.
#[derive(Debug, Clone, Default)]
pub struct DataPlane {
    /// What has not taken the policy over yet: a Gateway that has not acknowledged, a rule whose probe was not refused.
    pub waiting_for: Vec<String>,
    /// What the policy needs and does not get: a key server that does not answer, a full counter store.
    pub troubles: Vec<String>,
    /// Why some of it can do nothing where it is, though nothing is refused for that.
    pub gaps: Vec<String>,
    /// Rules that no request could be made up for: that they are guarded is known, and was not tried.
    pub untried: Vec<String>,
    /// Rules whose policy lets the request through that they are tried with, so that no refusal was seen.
    pub lets_in: Vec<String>,
    /// Rules of which nobody could say in time whether there is something to refuse.
    pub silent: Vec<String>,
    /// The policy has no rule: whoever believes that it guards something is wrong.
    pub asks_nothing: bool,
}

/// The name of a rule in [`DataPlane::waiting_for`].
pub fn component(path: &RuleKey) -> String {
    let listener = &path.listener;
    format!(
        "Gateway ({}/{}) listener {} {} ({}/{}) rule {}",
        listener.namespace,
        listener.gateway,
        listener.listener,
        path.kind,
        path.namespace,
        path.name,
        path.rule + 1
    )
}

/// A list in a message, of which a long one is cut.
pub(crate) fn few(names: &[String]) -> String {
    const MOST: usize = 3;
    let shown = &names[..names.len().min(MOST)];
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{}, and {more} more", shown.join(", ")),
    }
}

/// The conditions of a policy; `problems` are those of its own rules.
pub fn conditions(
    kind: Kind,
    standing: &Standing,
    problems: &[Problem],
    plane: &DataPlane,
) -> Vec<Condition> {
    match standing {
        Standing::Refused(refusal) => vec![refused(kind, refusal)],
        Standing::Attached {
            affects,
            overridden_by,
        } => {
            let enforced = enforced(kind, affects, overridden_by, problems, plane);
            vec![accepted(kind), enforced]
        }
    }
}

/// The condition of a policy that is accepted.
pub fn accepted(kind: Kind) -> Condition {
    Condition {
        r#type: "Accepted",
        is_true: true,
        reason: "Accepted",
        message: format!("{kind} has been accepted"),
    }
}

/// The condition of a policy that is not accepted.
pub fn refused(kind: Kind, refusal: &Refusal) -> Condition {
    let (reason, message) = match refusal {
        Refusal::TargetNotFound { name } => ("TargetNotFound", format!("{kind} target {name} was not found")),
        Refusal::Conflicted { by } => (
            "Conflicted",
            format!(
                "{kind} is conflicted by {}/{}: it was there before",
                by.namespace, by.name
            ),
        ),
        Refusal::Invalid { why } => ("Invalid", format!("{kind} target is invalid: {why}")),
    };
    Condition {
        r#type: "Accepted",
        is_true: false,
        reason,
        message,
    }
}

fn enforced(
    kind: Kind,
    affects: &[RuleKey],
    overridden_by: &[PolicyKey],
    problems: &[Problem],
    plane: &DataPlane,
) -> Condition {
    let not = |reason, message| Condition {
        r#type: "Enforced",
        is_true: false,
        reason,
        message,
    };
    if plane.asks_nothing {
        let message = format!("{kind} has no rules, so it asks nothing of any request");
        return not("Unknown", message);
    }
    if affects.is_empty() && overridden_by.is_empty() {
        let message = format!("{kind} is not in the path to any existing routes");
        return not("Unknown", message);
    }
    if affects.is_empty() {
        let names: Vec<String> = overridden_by
            .iter()
            .map(|key| format!("{}/{}", key.namespace, key.name))
            .collect();
        let message = format!("{kind} is overridden by [{}]", names.join(" "));
        return not("Overridden", message);
    }
    let list = |problems: &mut dyn Iterator<Item = &Problem>| -> String {
        let mut texts: Vec<String> = problems.map(Problem::to_string).collect();
        texts.sort();
        texts.dedup();
        texts.join("; ")
    };
    if problems
        .iter()
        .any(|problem| matches!(problem.what, Fault::Cel(_)))
    {
        let mut cel = problems.iter().filter(|p| matches!(p.what, Fault::Cel(_)));
        let message = format!(
            "validation issues: [{}]; requests are refused until this is mended",
            list(&mut cel)
        );
        return not("InvalidCelExpression", message);
    }
    if !problems.is_empty() {
        let message = format!(
            "{kind} has encountered some issues: {}; requests are refused until this is mended",
            list(&mut problems.iter())
        );
        return not("Unknown", message);
    }
    if !plane.gaps.is_empty() {
        let message = format!("{kind} has encountered some issues: {}", plane.gaps.join("; "));
        return not("Unknown", message);
    }
    if !plane.waiting_for.is_empty() {
        let message = format!(
            "{kind} waiting for the following components to sync: [{}]",
            plane.waiting_for.join(" ")
        );
        return not("Unknown", message);
    }
    let how = match overridden_by.is_empty() {
        true => "successfully",
        false => "partially",
    };
    let mut message = format!("{kind} has been {how} enforced");
    for (rules, why) in [
        (&plane.untried, "no request could be made up to try it"),
        (
            &plane.lets_in,
            "no refusal could be seen, because it lets a request without credentials through",
        ),
        (
            &plane.silent,
            "no refusal could be seen, because whom it asks did not answer in time",
        ),
    ] {
        if !rules.is_empty() {
            let rules = few(rules);
            message = format!("{message} (the data plane has its guard, but {why}: [{rules}])");
        }
    }
    if !plane.troubles.is_empty() {
        message = format!("{message}, but: {}", plane.troubles.join("; "));
    }
    Condition {
        r#type: "Enforced",
        is_true: true,
        reason: "Enforced",
        message,
    }
}

#[cfg(test)]
mod tests;
