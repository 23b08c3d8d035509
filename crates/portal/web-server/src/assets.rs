//! Which file answers a path, in which form. The files are part of the binary and are served from where they lie.

use http::StatusCode;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// What browsers see when the application was not built.
const UNBUILT: &str = include_str!("unbuilt.html");
/// Files with a hash in their names, which never change.
const HASHED: &str = "/assets/";

/// A file of the application.
pub(crate) struct File {
    path: &'static str,
    kind: &'static str,
    tag: &'static str,
    raw: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

/// The page that every path leads to, in pieces between which the nonce stands.
pub(crate) struct Index {
    tag: &'static str,
    pieces: &'static [&'static str],
}

/// How long a browser may keep an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// For ever.
    Forever,
    /// It asks each time.
    Ask,
    /// Not at all.
    Not,
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) keep: Keep,
    /// With its quotes; none for what has none.
    pub(crate) tag: Option<String>,
    pub(crate) encoding: Option<&'static str>,
    /// Whether another client may get another form.
    pub(crate) varies: bool,
    pub(crate) content: Content,
}

/// What an answer consists of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing: the client has it already.
    None,
    /// Bytes of the binary.
    File(&'static [u8]),
    /// A page with a nonce between its pieces.
    Page(&'static [&'static str]),
}

/// What a request says of itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asked<'a> {
    pub(crate) path: &'a str,
    pub(crate) accept_encoding: &'a str,
    pub(crate) if_none_match: &'a str,
}

/// The answer of this program's application.
pub(crate) fn find(asked: Asked<'_>) -> Found {
    find_in(FILES, INDEX.as_ref(), asked)
}

/// The application's letters, whose name has a hash in it.
pub(crate) fn letters() -> Option<&'static [u8]> {
    letters_in(FILES)
}

fn letters_in(files: &[File]) -> Option<&'static [u8]> {
    let is_text = |path: &str| {
        path.starts_with("/assets/RedHatTextVF-") && path.ends_with(".woff2") && !path.contains("Italic")
    };
    files.iter().find(|file| is_text(file.path)).map(|file| file.raw)
}

fn find_in(files: &[File], index: Option<&Index>, asked: Asked<'_>) -> Found {
    if let Ok(at) = files.binary_search_by(|file| file.path.cmp(asked.path)) {
        return file(&files[at], asked);
    }
    if asked.path.starts_with(HASHED) {
        // A page that is older than the program asks for it; the application's page instead would be kept as a script.
        return Found {
            status: StatusCode::NOT_FOUND,
            kind: "text/plain; charset=utf-8",
            keep: Keep::Not,
            tag: None,
            encoding: None,
            varies: false,
            content: Content::File(b"There is no such file; reload the page.\n"),
        };
    }
    page(index, asked)
}

fn page(index: Option<&Index>, asked: Asked<'_>) -> Found {
    let tag = index.map(|index| format!("\"{}\"", index.tag));
    let is_known = tag
        .as_ref()
        .is_some_and(|tag| is_listed(asked.if_none_match, tag));
    let (status, content) = match (index, is_known) {
        (None, _) => (StatusCode::SERVICE_UNAVAILABLE, Content::File(UNBUILT.as_bytes())),
        (Some(_), true) => (StatusCode::NOT_MODIFIED, Content::None),
        (Some(index), false) => (StatusCode::OK, Content::Page(index.pieces)),
    };
    Found {
        status,
        kind: "text/html; charset=utf-8",
        keep: if index.is_some() { Keep::Ask } else { Keep::Not },
        tag,
        encoding: None,
        varies: false,
        content,
    }
}

fn file(file: &File, asked: Asked<'_>) -> Found {
    let wanted = [("br", file.brotli), ("gzip", file.gzip)];
    let packed = wanted.into_iter().find_map(|(name, content)| {
        content
            .filter(|_| accepts(asked.accept_encoding, name))
            .map(|it| (name, it))
    });
    let (encoding, content) = match packed {
        Some((name, content)) => (Some(name), content),
        None => (None, file.raw),
    };
    // Each form has a tag of its own, and any of them says that the client has the file.
    let tag_of = |encoding: Option<&str>| match encoding {
        Some(name) => format!("\"{}-{name}\"", file.tag),
        None => format!("\"{}\"", file.tag),
    };
    let is_known = [None, Some("br"), Some("gzip")]
        .into_iter()
        .any(|encoding| is_listed(asked.if_none_match, &tag_of(encoding)));
    Found {
        status: if is_known {
            StatusCode::NOT_MODIFIED
        } else {
            StatusCode::OK
        },
        kind: file.kind,
        keep: if file.path.starts_with(HASHED) {
            Keep::Forever
        } else {
            Keep::Ask
        },
        tag: Some(tag_of(encoding)),
        encoding: encoding.filter(|_| !is_known),
        varies: file.brotli.is_some() || file.gzip.is_some(),
        content: if is_known {
            Content::None
        } else {
            Content::File(content)
        },
    }
}

/// Whether a client takes an encoding (RFC 9110, section 12.5.3): it is named, or anything is, and not with a weight of nothing.
fn accepts(header: &str, encoding: &str) -> bool {
    let mut any = false;
    for part in header.split(',') {
        let mut words = part.split(';').map(str::trim);
        let name = words.next().unwrap_or_default();
        let weight = words.find_map(|word| word.strip_prefix("q=").or_else(|| word.strip_prefix("Q=")));
        let is_wanted =
            weight.is_none_or(|weight| weight.trim().parse::<f32>().is_ok_and(|weight| weight > 0.0));
        if name.eq_ignore_ascii_case(encoding) {
            return is_wanted;
        }
        any |= name == "*" && is_wanted;
    }
    any
}

/// Whether `If-None-Match` names a tag, weak or not.
fn is_listed(header: &str, tag: &str) -> bool {
    header
        .split(',')
        .map(|it| it.trim().trim_start_matches("W/"))
        .any(|it| it == tag || it == "*")
}

#[cfg(test)]
mod tests;
