//! Manifests and what becomes of them: `testdata/NAME.yaml` and, as people would read it, `testdata/NAME.txt`.
//!
//! `UPDATE_EXPECT=1 cargo test -p fairway-gateway-routes` writes the second anew; read the difference before you keep it.

mod hostile;
mod incumbents;
mod limits;
mod memo;
mod precedence;
mod show;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fairway_text_yaml::{Limits, documents};
use serde_json::Value;

use super::build;
use crate::observed::{Kind, Name, Observed};
use crate::settings::{Addresses, Binding, GatewayName, Settings};
use crate::table::Certificate;

/// A certificate and its key, made once: what matters is only that they are some.
fn credential() -> &'static (String, String) {
    static MADE: OnceLock<(String, String)> = OnceLock::new();
    MADE.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(vec!["example.com".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    })
}

/// Puts real certificates where a manifest says `{CERT}`, `{KEY}`, or with `64` behind it in base64.
fn fill(value: &mut Value) {
    let (cert, key) = credential();
    match value {
        Value::String(text) => {
            *text = match text.as_str() {
                "{CERT}" => cert.clone(),
                "{KEY}" => key.clone(),
                "{CERT64}" => STANDARD.encode(cert),
                "{KEY64}" => STANDARD.encode(key),
                _ => return,
            };
        }
        Value::Array(items) => items.iter_mut().for_each(fill),
        Value::Object(fields) => fields.values_mut().for_each(fill),
        _ => {}
    }
}

/// A document of kind `Settings` is ours; all others are objects, in the workspace that `workspace:` names.
fn read(text: &str) -> (Observed, Settings) {
    let mut observed = Observed::default();
    let mut settings = Settings::default();
    for (at, mut document) in documents(text, Limits::default())
        .unwrap()
        .into_iter()
        .enumerate()
    {
        if document.is_null() {
            continue;
        }
        fill(&mut document);
        let kind = document["kind"].as_str().unwrap_or_default().to_owned();
        if kind == "Settings" {
            configure(&mut settings, &document);
            continue;
        }
        let kind = Kind::ALL
            .into_iter()
            .find(|one| one.name() == kind)
            .unwrap_or_else(|| panic!("document {at}: kind {kind:?}"));
        let workspace = document["workspace"].as_str().unwrap_or("one").to_owned();
        let meta = document["metadata"].as_object_mut().unwrap();
        meta.entry("generation").or_insert(1.into());
        if kind != Kind::GatewayClass && kind != Kind::Namespace {
            meta.entry("namespace").or_insert("infra".into());
        }
        // Older the earlier it stands in the file, unless it says when.
        meta.entry("creationTimestamp")
            .or_insert(format!("2026-01-01T{:02}:{:02}:00Z", at / 60, at % 60).into());
        observed.put(&workspace, kind, &document);
    }
    (observed, settings)
}

fn configure(settings: &mut Settings, document: &Value) {
    settings
        .classes
        .insert("fairway".into(), crate::settings::CONTROLLER.into());
    if let Some(map) = document["each"].as_object() {
        let given = map.iter().map(|(name, ip)| {
            let (workspace, rest) = name.split_once(':').unwrap_or(("one", name));
            let (namespace, name) = rest.split_once('/').unwrap_or(("infra", rest));
            let gateway = GatewayName {
                workspace: workspace.into(),
                name: Name::new(namespace, name),
            };
            (gateway, ip.as_str().unwrap().parse().unwrap())
        });
        settings.addresses = Addresses::Each(given.collect::<BTreeMap<_, _>>());
    }
    for (asked, became) in document["bindings"].as_object().into_iter().flatten() {
        let binding = match became.as_u64() {
            Some(port) => Binding::Port(u16::try_from(port).unwrap()),
            None => Binding::Failed(became.as_str().unwrap().to_owned()),
        };
        settings.bindings.insert(asked.parse().unwrap(), binding);
    }
    settings.operator = document["operator"].as_str().unwrap_or("one").to_owned();
    settings.router.wildcards = document["wildcards"].as_bool().unwrap_or_default();
    if document["routerCertificate"] != false {
        let (chain, key) = credential();
        settings.router.certificate = Some(Arc::new(Certificate {
            chain: chain.as_str().into(),
            key: key.as_str().into(),
        }));
    }
}

#[test]
fn manifests_and_what_becomes_of_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut cases: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    cases.sort();
    assert!(cases.len() >= 10, "the cases are in {}", folder.display());
    for case in cases {
        let (observed, settings) = read(&std::fs::read_to_string(&case).unwrap());
        let built = build(&observed, &settings);
        assert_eq!(
            built,
            build(&observed, &settings),
            "the same twice: {}",
            case.display()
        );
        let holders = Arc::new(built.holders.clone());
        assert_eq!(
            built,
            build(&observed, &Settings { holders, ..settings }),
            "nobody loses anything while nothing changes: {}",
            case.display()
        );
        expect_test::expect_file![case.with_extension("txt")].assert_eq(&show::all(&built));
    }
}
