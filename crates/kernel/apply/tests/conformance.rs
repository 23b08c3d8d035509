//! Structured-merge-diff's own cases, where `FAIRWAY_CONFORMANCE` names the folder that has them.

#[path = "../../../../xtask/src/conformance_apply.rs"]
mod conformance_apply;

#[test]
fn cases_of_structured_merge_diff() {
    let Some(folder) = std::env::var_os("FAIRWAY_CONFORMANCE") else {
        return;
    };
    let report = conformance_apply::run(&std::path::Path::new(&folder).join("apply")).unwrap();
    let failures: Vec<String> = report
        .failed
        .iter()
        .map(|(name, reason)| format!("{name}: {reason}"))
        .collect();
    assert!(
        failures.is_empty(),
        "{} passed, {} failed\n{}",
        report.passed,
        failures.len(),
        failures.join("\n")
    );
    assert!(report.passed > 0, "no case found");
}
