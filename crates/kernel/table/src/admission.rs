//! Webhooks and admission policies.

use serde_json::Value;

use crate::Printer;
use crate::column::{AGE, NAME, integer, text as column};
use crate::field::{UNSET, age, at, count, name, text};
use crate::selector::debug_selector;

pub(crate) fn admission_registration(resource: &str) -> Option<&'static Printer> {
    Some(match resource {
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => &WEBHOOK_CONFIGURATION,
        "validatingadmissionpolicies" => &VALIDATING_POLICY,
        "mutatingadmissionpolicies" => &MUTATING_POLICY,
        "validatingadmissionpolicybindings" | "mutatingadmissionpolicybindings" => &POLICY_BINDING,
        _ => return None,
    })
}

static WEBHOOK_CONFIGURATION: Printer = Printer {
    columns: &[
        NAME,
        integer("Webhooks", "How many webhooks the configuration has"),
        AGE,
    ],
    cells: |object, now| vec![name(object), count(object, "webhooks").into(), age(object, now)],
};

static VALIDATING_POLICY: Printer = Printer {
    columns: &[
        NAME,
        integer("Validations", "How many rules the policy has"),
        column("ParamKind", "The kind of the policy's parameters"),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object),
            count(object, "spec.validations").into(),
            param_kind(object).into(),
            age(object, now),
        ]
    },
};

static MUTATING_POLICY: Printer = Printer {
    columns: &[
        NAME,
        integer("Mutations", "How many mutations the policy has"),
        column("ParamKind", "The kind of the policy's parameters"),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object),
            count(object, "spec.mutations").into(),
            param_kind(object).into(),
            age(object, now),
        ]
    },
};

fn param_kind(policy: &Value) -> String {
    at(policy, "spec.paramKind").map_or(UNSET.to_owned(), |kind| {
        format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind"))
    })
}

static POLICY_BINDING: Printer = Printer {
    columns: &[
        NAME,
        column("PolicyName", "The policy that is bound"),
        column("ParamRef", "The object with the policy's parameters"),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object),
            text(object, "spec.policyName").into(),
            param_ref(object).into(),
            age(object, now),
        ]
    },
};

fn param_ref(binding: &Value) -> String {
    let Some(reference) = at(binding, "spec.paramRef") else {
        return UNSET.to_owned();
    };
    match (
        text(reference, "namespace"),
        text(reference, "name"),
        at(reference, "selector"),
    ) {
        (_, "", Some(selector)) => debug_selector(selector),
        (_, "", None) => UNSET.to_owned(),
        // Whether the parameters have a namespace is not known here.
        ("", name, _) => format!("*/{name}"),
        (namespace, name, _) => format!("{namespace}/{name}"),
    }
}
