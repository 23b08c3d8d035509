//! What is worth knowing of an object when it is written: fields that are kept and mean nothing here.

use std::sync::Arc;

use fairway_admission::{Admission, Operation, Request, Verdict};
use fairway_api::Definition;
use fairway_api::gateway::{DEVPORTAL_GROUP, EXTENSIONS_GROUP, KUADRANT_GROUP};
use serde_json::Value;

/// Who looks at the objects of a kind, if anybody does.
pub fn of(definition: &Arc<Definition>) -> Option<Arc<dyn Admission>> {
    let group = definition.group();
    [KUADRANT_GROUP, EXTENSIONS_GROUP, DEVPORTAL_GROUP]
        .contains(&group)
        .then(|| {
            Arc::new(Remarks {
                definition: Arc::clone(definition),
            }) as Arc<dyn Admission>
        })
}

struct Remarks {
    definition: Arc<Definition>,
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
        unlisted
            .map(|path| format!("unknown field \"{path}\": it is kept, and nothing acts on it"))
            .collect()
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
            Remarks { definition }
        };
        let limits = of_kind("RateLimitPolicy");
        assert!(limits.remarks(&json!({"spec": {"limits": {}}})).is_empty());
        assert_eq!(limits.remarks(&json!({"spec": {"limit": {}}})).len(), 1);
        assert!(of_kind("APIProduct").remarks(&json!({"spec": {}})).is_empty());
        assert_eq!(
            of_kind("APIKey")
                .remarks(&json!({"spec": {"plan": "gold"}}))
                .len(),
            1
        );
    }
}
