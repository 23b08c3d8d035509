//! Both forms of the ConfigMap, and faults in it.

use super::*;

const DOCUMENT: &str = "
cert-manager.io/Certificate:
  health.lua: return {status='Healthy'}
  health.lua.useOpenLibs: true
  ignoreDifferences: |
    jsonPointers:
    - /spec/secretName
'*.example.com/*':
  health.lua: return {status='Degraded'}
ConfigMap:
  health.lua: return {status='Suspended'}
";

#[test]
fn both_forms_are_read() {
    let all = Customizations::read([
        ("resource.customizations", DOCUMENT),
        (
            "resource.customizations.health.apps_Deployment",
            "return {status='Unknown'}",
        ),
        ("resource.customizations.useOpenLibs.apps_Deployment", "true"),
        (
            "resource.customizations.ignoreDifferences.all",
            "jqPathExpressions: ['.spec.x']",
        ),
        (
            "resource.customizations.knownTypeFields.a.io_B",
            "- field: spec\n  type: core/v1/PodSpec",
        ),
        ("resource.compareoptions", "not ours"),
    ])
    .unwrap();
    let cases = [
        (
            "cert-manager.io",
            "Certificate",
            Some(("return {status='Healthy'}", true)),
        ),
        ("apps", "Deployment", Some(("return {status='Unknown'}", true))),
        (
            "db.example.com",
            "Base",
            Some(("return {status='Degraded'}", false)),
        ),
        ("", "ConfigMap", Some(("return {status='Suspended'}", false))),
        ("", "Secret", None),
        ("apps", "StatefulSet", None),
    ];
    for (group, kind, expected) in cases {
        assert_eq!(all.health_script(group, kind), expected, "{group}/{kind}");
    }
    assert_eq!(
        all.get("cert-manager.io/Certificate")
            .unwrap()
            .ignore_differences
            .json_pointers,
        ["/spec/secretName"]
    );
    assert_eq!(
        all.get("a.io/B").unwrap().known_type_fields[0].kind,
        "core/v1/PodSpec"
    );
    let everywhere: Vec<&str> = all
        .matching("", "Secret")
        .flat_map(|one| &one.ignore_differences.jq_path_expressions)
        .map(String::as_str)
        .collect();
    assert_eq!(everywhere, [".spec.x"], "`all` is also for the core group");
}

#[test]
fn faults_name_their_key() {
    let cases = [
        (
            ("resource.customizations.healthy.a_B", ""),
            "argocd-cm has the key resource.customizations.healthy.a_B",
        ),
        (
            ("resource.customizations.health.a_B_C", ""),
            "argocd-cm has the key resource.customizations.health.a_B_C",
        ),
        (
            ("resource.customizations.useOpenLibs.B", "maybe"),
            "resource.customizations.useOpenLibs.B of argocd-cm",
        ),
        (
            ("resource.customizations.ignoreDifferences.B", "- a"),
            "reading resource.customizations.ignoreDifferences.B",
        ),
        (
            ("resource.customizations", "[a"),
            "reading resource.customizations of argocd-cm",
        ),
    ];
    for (entry, expected) in cases {
        let error = Customizations::read([entry]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
