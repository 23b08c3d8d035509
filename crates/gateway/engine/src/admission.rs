//! What is worth knowing of an object when it is written: fields that are kept and mean nothing here, and kinds that nothing acts
//! on.

use std::sync::Arc;

use fairway_admission::{Admission, Operation, Request, Verdict};
use fairway_api::Definition;
use fairway_api::gateway::{DEVPORTAL_GROUP, EXTENSIONS_GROUP, KUADRANT_GROUP};
use serde_json::Value;

/// Who looks at the objects of a kind, if anybody does.
pub fn of(definition: &Arc<Definition>) -> Option<Arc<dyn Admission>> {
    let is_acted_on = match definition.group() {
        KUADRANT_GROUP | EXTENSIONS_GROUP => true,
        DEVPORTAL_GROUP => false,
        _ => return None,
    };
    Some(Arc::new(Remarks {
        definition: Arc::clone(definition),
        is_acted_on,
    }))
}

struct Remarks {
    definition: Arc<Definition>,
    is_acted_on: bool,
}

impl Admission for Remarks {
    fn judge(&self, request: &Request<'_>, object: &Value) -> Verdict {
        if request.operation == Operation::Delete || request.subresource.is_some() {
            return Ok(Vec::new());
        }
        Ok(self.remarks(object))
    }
}

impl Remarks {
    fn remarks(&self, object: &Value) -> Vec<String> {
        let unlisted = self.definition.unlisted(object).into_iter();
        let unlisted =
            unlisted.map(|path| format!("unknown field \"{path}\": it is kept, and nothing acts on it"));
        let idle = (!self.is_acted_on).then(|| {
            let kind = self.definition.kind().kind;
            format!("Fairway keeps objects of kind {kind} and does not act on them yet")
        });
        unlisted.chain(idle).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_means_nothing_is_told() {
        let of_kind = |kind: &str| {
            let all = fairway_api::gateway_definitions().into_iter();
            let definition = Arc::new(all.into_iter().find(|it| it.kind().kind == kind).unwrap());
            Remarks {
                is_acted_on: definition.group() != DEVPORTAL_GROUP,
                definition,
            }
        };
        let limits = of_kind("RateLimitPolicy");
        assert!(limits.remarks(&json!({"spec": {"limits": {}}})).is_empty());
        assert_eq!(limits.remarks(&json!({"spec": {"limit": {}}})).len(), 1);
        assert_eq!(of_kind("APIProduct").remarks(&json!({"spec": {}})).len(), 1);
    }
}
