//! A plan in each of its forms.

use serde_json::json;

use super::*;

fn plan() -> Value {
    json!({
        "metadata": {"namespace": "argocd", "name": "shop"}, "touched": true,
        "revisions": ["1111111bbbbbbbb"], "impact": "data loss",
        "approval": {"reasons": ["the disk shop/data"], "digest": "00"},
        "changes": [
            {"group": "", "kind": "ConfigMap", "namespace": "shop", "name": "a", "action": "create", "impact": "none",
             "target": {"kind": "ConfigMap", "data": {"x": "1"}}, "fields": []},
            {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web", "action": "change",
             "impact": "live change", "fields": ["spec.replicas"],
             "live": {"kind": "Deployment", "spec": {"replicas": 1}}, "target": {"kind": "Deployment", "spec": {"replicas": 2}}},
            {"group": "", "kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data", "action": "prune",
             "impact": "data loss", "fields": [], "live": {"kind": "PersistentVolumeClaim"}},
            {"group": "", "kind": "Secret", "namespace": "shop", "name": "s", "action": "change", "impact": "live change",
             "fields": [], "adopted": true, "target": {"kind": "Secret"}},
            {"group": "batch", "kind": "Job", "namespace": "shop", "name": "migrate", "action": "hook", "impact": "none",
             "message": "PreSync"},
        ],
    })
}

fn compact(value: &Value) -> String {
    format!("{value:#}\n")
}

#[test]
fn for_a_terminal() {
    assert_eq!(
        describe(&plan()),
        "argocd/shop at 1111111: 1 to create, 2 to change, 1 to prune, impact: data loss\n\
         \x20 ACTION  KIND                   NAME          IMPACT       DETAIL\n\
         \x20 create  ConfigMap              shop/a        none         \n\
         \x20 change  Deployment             shop/web      live change  spec.replicas\n\
         \x20 prune   PersistentVolumeClaim  shop/data     data loss    \n\
         \x20 change  Secret                 shop/s        live change  not this application's until now\n\
         \x20 hook    Job                    shop/migrate  none         PreSync\n\
         \x20 waits for approval: it would delete the disk shop/data\n"
    );
    let mut proposed = plan();
    proposed["head"] = json!("2222222c");
    assert!(describe(&proposed).starts_with("argocd/shop at 2222222: "));
    let nothing = json!({"metadata": {"name": "a"}, "revisions": [], "changes": []});
    assert_eq!(describe(&nothing), "a: no object changes\n");
    assert!(!is_different(&nothing) && is_different(&plan()));
}

#[test]
fn as_argocd_shows_differences() {
    let mut shown = |live: &Value, target: &Value| difference(live, target, &compact);
    assert_eq!(
        diff(&plan(), &mut shown),
        "\n===== /ConfigMap shop/a ======\n0a1,6\n> {\n>   \"kind\": \"ConfigMap\",\n>   \"data\": {\n>     \"x\": \"1\"\n>   }\n> }\n\
         \n===== apps/Deployment shop/web ======\n4c4\n<     \"replicas\": 1\n---\n>     \"replicas\": 2\n\
         \n===== /PersistentVolumeClaim shop/data ======\n1,3d0\n< {\n<   \"kind\": \"PersistentVolumeClaim\"\n< }\n\
         \n===== /Secret shop/s ======\nit is there, and not this application's until now: it is not shown\n"
    );
}

#[test]
fn for_a_pull_request() {
    let said = comment(&[plan()], "1111111bbbbbbbb");
    assert_eq!(
        said,
        "<!-- fairway: plan -->\n### Plan for 1111111\n\n\
         **argocd/shop**: 1 to create, 2 to change, 1 to prune, impact: **data loss**\n\n\
         | action | kind | name | impact | detail |\n|---|---|---|---|---|\n\
         | create | ConfigMap | shop/a | none |  |\n\
         | change | Deployment | shop/web | live change | spec.replicas |\n\
         | prune | PersistentVolumeClaim | shop/data | data loss |  |\n\
         | change | Secret | shop/s | live change | not this application's until now |\n\
         | hook | Job | shop/migrate | none | PreSync |\n\
         \nThe sync will wait for approval: it would delete the disk shop/data.\n\n"
    );
    assert_eq!(
        comment(&[], "abc"),
        "<!-- fairway: plan -->\n### Plan for abc\n\nNo application is touched.\n"
    );
}

#[test]
fn statuses() {
    let failed = json!({"metadata": {"name": "a"}, "failure": "it is bad", "changes": []});
    let small =
        json!({"metadata": {"name": "a"}, "impact": "live change", "changes": [{"action": "change"}]});
    for (plans, state, said) in [
        (vec![], "success", "no application is touched"),
        (
            vec![small.clone()],
            "success",
            "1 object in 1 application, impact: live change",
        ),
        (
            vec![small, plan()],
            "warning",
            "5 objects in 2 applications, impact: data loss, waits for approval",
        ),
        (vec![plan(), failed], "failure", "a: it is bad"),
    ] {
        assert_eq!(status(&plans), (state, said.to_owned()));
    }
}
