//! Flow schemas and priority levels.

use serde_json::Value;

use crate::Printer;
use crate::column::{AGE, NAME, text as column};
use crate::field::{NONE, age, at, condition, name, number, text};

pub(crate) fn flow_control(resource: &str) -> Option<&'static Printer> {
    Some(match resource {
        "flowschemas" => &FLOW_SCHEMA,
        "prioritylevelconfigurations" => &PRIORITY_LEVEL,
        _ => return None,
    })
}

static FLOW_SCHEMA: Printer = Printer {
    columns: &[
        NAME,
        column("PriorityLevel", "The priority level of matching requests"),
        column("MatchingPrecedence", "Among matching schemas, the lowest counts"),
        column("DistinguisherMethod", "What tells the flows of the schema apart"),
        AGE,
        column("MissingPL", "Whether the priority level does not exist"),
    ],
    cells: |object, now| {
        let method = at(object, "spec.distinguisherMethod").map_or(NONE, |method| text(method, "type"));
        vec![
            name(object),
            text(object, "spec.priorityLevelConfiguration.name").into(),
            number(object, "spec.matchingPrecedence").into(),
            method.into(),
            age(object, now),
            condition(object, "Dangling")
                .map_or("?", |condition| text(condition, "status"))
                .into(),
        ]
    },
};

static PRIORITY_LEVEL: Printer = Printer {
    columns: &[
        NAME,
        column("Type", "Whether the level is limited or exempt"),
        column("NominalConcurrencyShares", "The level's share of the server"),
        column("Queues", "How many queues the level has"),
        column("HandSize", "How many queues a flow may use"),
        column("QueueLengthLimit", "How long each queue may be"),
        AGE,
    ],
    cells: |object, now| {
        let in_queue = |field: &str| -> Value {
            match at(object, "spec.limited.limitResponse.queuing") {
                Some(queuing) => number(queuing, field).into(),
                None => NONE.into(),
            }
        };
        let shares =
            at(object, "spec.limited").map_or(NONE.into(), |l| number(l, "nominalConcurrencyShares").into());
        vec![
            name(object),
            text(object, "spec.type").into(),
            shares,
            in_queue("queues"),
            in_queue("handSize"),
            in_queue("queueLengthLimit"),
            age(object, now),
        ]
    },
};
