//! Rego as Authorino runs it, and Rego that must not run for long.

use serde_json::json;

use super::*;

/// Where it matters what a module decides, and not how busy the machine is.
const PATIENT: Duration = Duration::from_secs(10);
/// Where it matters that a module is stopped.
const SHORT: Duration = Duration::from_millis(5);

#[test]
fn modules_decide() {
    let alice =
        json!({"auth": {"identity": {"sub": "alice", "groups": ["dev"]}}, "request": {"method": "GET"}});
    let v0 = false;
    let v1 = true;
    for (module, version, allowed) in [
        ("allow { input.auth.identity.sub == \"alice\" }", v0, true),
        ("allow { input.auth.identity.sub == \"bob\" }", v0, false),
        ("package x\nallow { true }", v0, true),
        ("", v0, false),
        ("allow if input.request.method in [\"GET\", \"HEAD\"]", v1, true),
        (
            "groups contains g if some g in input.auth.identity.groups\nallow if \"dev\" in groups",
            v1,
            true,
        ),
        (
            "allow { regex.match(\"^ali\", input.auth.identity.sub) }",
            v0,
            true,
        ),
        ("allow = \"yes\" { true }", v0, false),
    ] {
        let compiled = Module::compile(module, false, version, PATIENT).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(compiled.allow(&alice).is_ok(), allowed, "{module}");
    }
    let all = Module::compile("allow { true }\nteam = \"toys\" { true }", true, v0, PATIENT).unwrap();
    assert_eq!(all.allow(&alice).unwrap()["team"], "toys");
}

#[test]
fn what_is_no_rego_is_refused_when_it_is_compiled() {
    for module in [
        "allow {",
        "allow { undefined_function(1) }",
        "default allow = true",
    ] {
        assert!(
            Module::compile(module, false, false, PATIENT).is_err(),
            "{module}"
        );
    }
}

#[test]
fn hostile_modules_end_soon() {
    let nested = "allow { a := numbers.range(1, 100000); some i, j, k; a[i] + a[j] + a[k] == 1 }";
    let grown = "allow { a := [x | x := numbers.range(1, 3000)[_]]; b := [concat(\"\", [sprintf(\"%v\", [a]) | a[_]]) | a[_]]; count(b) < 0 }";
    for module in [nested, grown] {
        let start = Instant::now();
        let allowed =
            Module::compile(module, false, false, SHORT).and_then(|module| module.allow(&json!({})));
        assert!(allowed.is_err());
        assert!(
            start.elapsed().as_millis() < 3_000,
            "{:?}: {module}",
            start.elapsed()
        );
    }
}

#[test]
fn a_request_is_not_judged_for_long() {
    // Only with this input, so that the trial does not find out.
    let slow = "input.slow; a := numbers.range(1, 300); some i, j, k; a[i] + a[j] + a[k] == 1";
    for (module, all_values, reason) in [
        (format!("allow {{ {slow} }}"), false, "the answer takes long"),
        (
            format!("allow {{ true }}\nother {{ {slow} }}"),
            true,
            "another value takes long",
        ),
    ] {
        let module = Module::compile(&module, all_values, false, SHORT).unwrap_or_else(|why| panic!("{why}"));
        // The quickest of several: others may keep the processor, but not each time.
        let quickest = (0..20).map(|_| {
            let start = Instant::now();
            let why = module.allow(&json!({"slow": true})).unwrap_err();
            assert!(why.contains("failed"), "{reason}: {why}");
            start.elapsed()
        });
        let quickest = quickest.min().unwrap();
        assert!(quickest < Duration::from_millis(20), "{reason}: {quickest:?}");
    }
}

/// Whoever serves everybody evaluates a slow module some times and then no more; elsewhere it has more time.
#[tokio::test]
async fn slow_modules_are_evaluated_apart() {
    let slow = "allow { input.slow; a := numbers.range(1, 200); some i, j; a[i] + a[j] == 1000 }";
    let module = Arc::new(Module::compile(slow, false, false, SHORT).unwrap());
    let input = json!({"slow": true});
    for round in 0..=FORGIVEN {
        assert!(!module.is_slow(), "round {round}");
        module.allow(&input).unwrap_err();
    }
    assert!(module.is_slow());
    let all = (0..2 * AT_ONCE).map(|_| Arc::clone(&module).allow_apart(input.clone()));
    for outcome in futures::future::join_all(all).await {
        outcome.unwrap_err();
    }
    assert_eq!(module.apart.available_permits(), AT_ONCE, "places are given back");
}
