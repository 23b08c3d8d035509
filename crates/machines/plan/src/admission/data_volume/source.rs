//! Where the content of a disk comes from: one place, and an address that could be one.

use serde_json::Value;

use super::super::text;
use super::spec::wrong;
use crate::validate::Cause;

const SOURCES: [&str; 10] = [
    "blank", "gcs", "http", "imageio", "pvc", "registry", "s3", "snapshot", "upload", "vddk",
];

/// What is wrong with the source of a spec.
pub(super) fn fault(path: &str, spec: &Value) -> Option<Cause> {
    let source = &spec["source"];
    let field = format!("{path}.source");
    match SOURCES.iter().filter(|it| source[**it].is_object()).count() {
        0 => return Some(wrong(field, "Missing Data volume source")),
        1 => {}
        _ => return Some(wrong(field, "Multiple Data volume sources")),
    }
    let content = text(spec, "/contentType");
    let content_field = format!("{path}.contentType");
    if !["", "kubevirt", "archive"].contains(&content) {
        return Some(wrong(content_field, "ContentType not one of: kubevirt, archive"));
    }
    for (part, word) in [("http", "HTTP"), ("s3", "S3"), ("gcs", "GCS")] {
        if source[part].is_object() {
            return address(path, word, text(&source[part], "/url"));
        }
    }
    if source["blank"].is_object() && content == "archive" {
        let message = "SourceType cannot be blank and the contentType be archive";
        return Some(wrong(content_field, message));
    }
    if source["registry"].is_object() {
        if content == "archive" {
            return Some(wrong(
                content_field,
                "ContentType must be kubevirt when Source is Registry",
            ));
        }
        return registry(path, &source["registry"]);
    }
    for (part, word, shown, needed) in [
        (
            "imageio",
            "Imageio",
            "ImageIO",
            &["secretRef", "certConfigMap", "diskId"][..],
        ),
        (
            "vddk",
            "VDDK",
            "VDDK",
            &["secretRef", "uuid", "backingFile", "thumbprint"][..],
        ),
    ] {
        let from = &source[part];
        if !from.is_object() {
            continue;
        }
        let has = |field: &&str| from[*field].as_str().is_some_and(|it| !it.is_empty());
        if !needed.iter().all(has) {
            let field = format!("{path}.source.{word}");
            return Some(wrong(&field, format!("{field} source {word} is not valid")));
        }
        return address(path, shown, text(from, "/url"));
    }
    for (part, word, noun) in [("pvc", "PVC", "PVC"), ("snapshot", "Snapshot", "snapshot")] {
        let from = &source[part];
        if from.is_object() && (text(from, "/namespace").is_empty() || text(from, "/name").is_empty()) {
            let field = format!("{path}.source.{word}");
            return Some(wrong(&field, format!("{field} source {noun} is not valid")));
        }
    }
    None
}

fn address(path: &str, word: &str, url: &str) -> Option<Cause> {
    let why = match scheme(url) {
        _ if url.is_empty() => "source URL is empty".to_owned(),
        Ok("http" | "https" | "gs") => return None,
        // Where a request goes must be a place.
        Ok("") if !url.starts_with('/') => format!("Invalid source URL: {url}"),
        Ok(_) => format!("Invalid source URL scheme: {url}"),
        Err(Malformed) => format!("Invalid source URL: {url}"),
    };
    Some(wrong(
        format!("{path}.source.{word}.url"),
        format!("{path}.source {why}"),
    ))
}

fn registry(path: &str, source: &Value) -> Option<Cause> {
    let field = |part: &str| format!("{path}.source.Registry{part}");
    let (url, stream) = (source["url"].as_str(), source["imageStream"].as_str());
    if url.is_some() == stream.is_some() {
        return Some(wrong(
            field(""),
            "Source registry should have either URL or ImageStream",
        ));
    }
    if let Some(url) = url {
        match scheme(url) {
            Err(Malformed) => {
                return Some(wrong(field(".URL"), format!("Illegal registry source URL {url}")));
            }
            Ok("docker" | "oci-archive") => {}
            Ok(_) => {
                let message = format!("Illegal registry source URL scheme {url}");
                return Some(wrong(field(".URL"), message));
            }
        }
    }
    let method = source["pullMethod"].as_str();
    let at = field(".importMethod");
    if let Some(method) = method.filter(|it| !["pod", "node"].contains(it)) {
        return Some(wrong(
            at,
            format!("ImportMethod {method} is neither pod, node or \"\""),
        ));
    }
    match stream {
        Some("") => Some(wrong(at, "Source registry ImageStream is not valid")),
        Some(_) if method != Some("node") => Some(wrong(
            at,
            "Source registry ImageStream is supported only with node pull import method",
        )),
        _ => None,
    }
}

/// No address at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Malformed;

/// The scheme of an address, empty if it has none; as strict as Go's parser where that matters.
fn scheme(url: &str) -> Result<&str, Malformed> {
    if url.chars().any(|it| it.is_ascii_control()) {
        return Err(Malformed);
    }
    let is_in_scheme = |it: char| it.is_ascii_alphanumeric() || ['+', '-', '.'].contains(&it);
    let (scheme, rest) = match url.find(|it| !is_in_scheme(it)) {
        Some(0) if url.starts_with(':') => return Err(Malformed),
        Some(end) if url[end..].starts_with(':') && url.starts_with(|it: char| it.is_ascii_alphabetic()) => {
            (&url[..end], &url[end + 1..])
        }
        _ => ("", url),
    };
    let first = rest.split('/').next().unwrap_or_default();
    if scheme.is_empty() && first.contains(':') {
        return Err(Malformed);
    }
    let host = rest.strip_prefix("//").map(|rest| {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        rest[..end].rsplit('@').next().unwrap_or_default()
    });
    let is_host = |host: &str| !host.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}']);
    let is_port = |host: &str| match host.rsplit_once(':') {
        Some((before, port)) if !before.contains(':') || before.ends_with(']') => {
            port.chars().all(|it| it.is_ascii_digit())
        }
        _ => true,
    };
    match host.is_none_or(|host| is_host(host) && is_port(host)) && escapes_are_whole(rest) {
        true => Ok(scheme),
        false => Err(Malformed),
    }
}

fn escapes_are_whole(text: &str) -> bool {
    text.split('%').skip(1).all(|after| {
        let digits = after.as_bytes();
        digits.len() >= 2 && digits[..2].iter().all(u8::is_ascii_hexdigit)
    })
}

#[cfg(test)]
mod tests {
    use super::{Malformed, scheme};

    #[test]
    fn addresses() {
        for (url, expected) in [
            ("https://images.example.com/a.qcow2", Ok("https")),
            ("http://10.0.0.1:8080/a?b=c", Ok("http")),
            ("http://[::1]:80/a", Ok("http")),
            ("docker://quay.io/containerdisks/fedora:40", Ok("docker")),
            ("quay.io/containerdisks/fedora", Ok("")),
            ("quay.io:5000/fedora", Ok("quay.io")),
            ("/a/path", Ok("")),
            ("", Ok("")),
            ("http://host:port/", Err(Malformed)),
            ("http://a b/", Err(Malformed)),
            ("http://a/%zz", Err(Malformed)),
            ("1http://a", Err(Malformed)),
            ("://a", Err(Malformed)),
            ("http://a\n", Err(Malformed)),
        ] {
            assert_eq!(scheme(url), expected, "{url:?}");
        }
    }
}
