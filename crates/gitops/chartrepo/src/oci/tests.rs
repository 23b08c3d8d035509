//! Tables of names, tags, digests and manifests.

use serde_json::json;

use super::*;

#[test]
fn repositories_are_named() {
    type Case = (&'static str, &'static str, Option<(&'static str, &'static str)>);
    let cases: &[Case] = &[
        ("reg.h/charts", "web", Some(("reg.h", "charts/web"))),
        ("reg.h:5000", "web", Some(("reg.h:5000", "web"))),
        ("reg.h/charts/", "team/web", Some(("reg.h", "charts/team/web"))),
        ("oci://reg.h/charts", "web", Some(("reg.h", "charts/web"))),
        ("oci://reg.h/charts/web", "web", Some(("reg.h", "charts/web"))),
        // Without a scheme the chart is always below.
        ("reg.h/web", "web", Some(("reg.h", "web/web"))),
        (
            "oci://reg.h/team/manifests",
            "",
            Some(("reg.h", "team/manifests")),
        ),
        ("oci://docker.io/a/b", "", Some(("registry-1.docker.io", "a/b"))),
        ("oci://reg.h", "", None),
        ("oci:///a", "", None),
        ("oci://reg.h/A", "", None),
        ("oci://reg.h/a/../b", "", None),
        ("oci://reg.h/a//b", "", None),
        ("oci://reg.h/a?x=1", "", None),
        ("ftp://reg.h/a", "", None),
    ];
    for (url, chart, expected) in cases {
        let found = Repository::parse(url, chart).ok();
        let found = found.as_ref().map(|it| (it.registry.as_str(), it.name.as_str()));
        assert_eq!(found, *expected, "{url} {chart}");
    }
    let repository = Repository::parse("reg.h:5000/charts", "web").unwrap();
    let base = repository.base(false).unwrap();
    assert_eq!(
        repository.manifest(&base, &tag_of("1.0.0+b")).to_string(),
        "https://reg.h:5000/v2/charts/web/manifests/1.0.0_b"
    );
    assert!(Repository::parse("user@reg.h/a", "").unwrap().base(false).is_ok());
    assert!(Repository::parse("reg h/a", "").unwrap().base(false).is_err());
}

#[test]
fn tags_and_pages() {
    assert_eq!(
        tags_in(br#"{"name":"x","tags":["1.0.0","1.0.0_b",7]}"#).unwrap(),
        ["1.0.0", "1.0.0+b"]
    );
    assert_eq!(tags_in(br#"{"tags":null}"#).unwrap(), Vec::<String>::new());
    assert!(tags_in(b"<html>").is_err());
    let at = Url::parse("https://reg.h/v2/a/tags/list").unwrap();
    let next = |header: &str| next_page(&at, header).map(|url| url.to_string());
    assert_eq!(
        next("</v2/a/tags/list?last=x&n=2>; rel=\"next\"").as_deref(),
        Some("https://reg.h/v2/a/tags/list?last=x&n=2")
    );
    assert_eq!(next("<https://evil.h/v2>; rel=\"next\""), None);
    assert_eq!(next("</v2>; rel=\"prev\""), None);
    assert_eq!(next("nonsense"), None);
    for (text, good) in [
        ("1.0.0", true),
        ("_a", true),
        ("-a", false),
        ("a/b", false),
        ("", false),
        ("a+b", false),
    ] {
        assert_eq!(is_tag(text), good, "{text}");
    }
}

#[test]
fn digests_say_what_something_is() {
    let empty = Digest::of(b"");
    assert_eq!(
        empty.to_string(),
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
    assert_eq!(Digest::parse(&empty.digits().to_uppercase()).unwrap(), empty);
    assert!(empty.check("it", b"").is_ok() && empty.check("it", b"x").is_err());
    for text in ["", "sha256:", "sha256:zz", "sha512:00", "../../etc/passwd"] {
        assert!(Digest::parse(text).is_err(), "{text}");
    }
}

fn layer(kind: &str) -> serde_json::Value {
    json!({"mediaType": kind, "digest": Digest::of(kind.as_bytes()).to_string(), "size": 3})
}

#[test]
fn layers_are_chosen() {
    const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
    const TGZ: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
    const PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";
    type Chosen = Result<&'static str, &'static str>;
    let cases: &[(&str, &[&str], Chosen, Chosen)] = &[
        (CHART_CONFIG, &[CHART, PROVENANCE], Ok(CHART), Ok(CHART)),
        (
            CHART_CONFIG,
            &[OLD_CHART],
            Ok(OLD_CHART),
            Err("not in the list of allowed"),
        ),
        (
            CHART_CONFIG,
            &[PROVENANCE],
            Err("does not contain a layer"),
            Err("got 0"),
        ),
        ("x", &[CHART], Err("could not load config"), Ok(CHART)),
        (
            "x",
            &[TAR, "application/json"],
            Err("could not load config"),
            Ok(TAR),
        ),
        ("x", &[TGZ, TAR], Err("could not load config"), Err("got 2")),
    ];
    for (config, kinds, chart, content) in cases {
        let layers: Vec<_> = kinds.iter().map(|kind| layer(kind)).collect();
        let text = json!({"config": {"mediaType": config}, "layers": layers}).to_string();
        let manifest = Manifest::parse(text.as_bytes()).unwrap();
        for (found, expected) in [(manifest.chart(), chart), (manifest.content(), content)] {
            match (found, expected) {
                (Ok(found), Ok(kind)) => assert_eq!(found.media_type, *kind, "{kinds:?}"),
                (Err(why), Err(part)) => assert!(why.0.contains(part), "{kinds:?}: {why}"),
                (found, expected) => panic!("{kinds:?}: {found:?}, not {expected:?}"),
            }
        }
    }
    for text in [
        "[]",
        "{\"manifests\":[]}",
        "{}",
        "x",
        "{\"layers\":[{\"mediaType\":\"tar\",\"digest\":\"../x\"}]}",
    ] {
        assert!(Manifest::parse(text.as_bytes()).is_err(), "{text}");
    }
    let many = json!({"layers": vec![layer(TAR); 11]}).to_string();
    assert!(
        Manifest::parse(many.as_bytes())
            .unwrap_err()
            .0
            .contains("no more than 10")
    );
}
