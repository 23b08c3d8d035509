//! Volumes whose content would have to be copied while the guest runs, which is not done.

use serde_json::Value;

fn volumes(spec: &Value) -> impl Iterator<Item = &Value> {
    spec["volumes"].as_array().into_iter().flatten()
}

/// Volumes that are to be others while their content is to move along. `vm` is the machine, `started` the spec of the template that its
/// instance was started from.
pub fn to_be_moved(vm: &Value, started: &Value) -> Vec<String> {
    if vm["spec"]["updateVolumesStrategy"] != "Migration" {
        return Vec::new();
    }
    let is_claim = |it: &&Value| it["persistentVolumeClaim"].is_object() || it["dataVolume"].is_object();
    let differs = |volume: &&Value| {
        let before = volumes(started).find(|it| it["name"] == volume["name"]);
        before.is_some_and(|it| it != *volume)
    };
    let current = volumes(&vm["spec"]["template"]["spec"]).filter(is_claim);
    let names = current.filter(differs).filter_map(|it| it["name"].as_str());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn volumes_whose_content_is_to_move_are_known() {
        let volumes = |claim: &str| {
            json!({"volumes": [
                {"name": "root", "persistentVolumeClaim": {"claimName": claim}}, {"name": "seed", "cloudInitNoCloud": {}},
            ]})
        };
        let vm = |strategy: &str, claim: &str| json!({"spec": {"updateVolumesStrategy": strategy, "template": {"spec": volumes(claim)}}});
        assert_eq!(to_be_moved(&vm("Migration", "new"), &volumes("old")), ["root"]);
        assert!(to_be_moved(&vm("Migration", "old"), &volumes("old")).is_empty());
        assert!(to_be_moved(&vm("Replacement", "new"), &volumes("old")).is_empty());
    }
}
