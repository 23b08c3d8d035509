//! From bytes to the head of a request, or to the status that refuses it.
//!
//! What two servers could read differently is refused rather than repaired, because the one behind us may repair it in
//! another way: bare line feeds, folded lines, both lengths, a length twice, a host twice or none.

use std::mem::MaybeUninit;

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version};

/// How long the body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    None,
    Length(u64),
    Chunked,
}

#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) parts: Parts,
    pub(crate) framing: Framing,
    /// The client can send another request on this connection.
    pub(crate) keep_alive: bool,
    /// It waits for `100 Continue` before it sends the body.
    pub(crate) expects: bool,
    /// It wants the connection for another protocol.
    pub(crate) upgrades: bool,
}

/// Why a request is not even looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bad {
    pub(crate) status: StatusCode,
    pub(crate) why: &'static str,
}

const fn bad(why: &'static str) -> Bad {
    Bad {
        status: StatusCode::BAD_REQUEST,
        why,
    }
}

pub(crate) enum Read {
    Head(Box<Head>),
    /// More bytes are needed.
    Partial,
    /// The preface of HTTP/2.
    Http2,
}

/// Most headers that a request may have whatever the options say: they are parsed into an array on the stack.
pub(crate) const MOST_HEADERS: usize = 128;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// Takes one head from the front of `buffer`. `scanned` is where an earlier call stopped looking.
pub(crate) fn read(
    buffer: &mut BytesMut,
    scanned: &mut usize,
    longest: usize,
    most: usize,
) -> Result<Read, Bad> {
    if buffer.is_empty() {
        return Ok(Read::Partial);
    }
    // Some clients send an empty line after a body (RFC 9112, 2.2); one is forgiven.
    if *scanned == 0 && buffer.starts_with(b"\r\n") {
        let _ = buffer.split_to(2);
    }
    let Some(end) = end_of_head(buffer, scanned)? else {
        if buffer.len() >= longest {
            return Err(too_long(buffer, longest));
        }
        return Ok(Read::Partial);
    };
    if end > longest {
        return Err(too_long(buffer, longest));
    }
    *scanned = 0;
    if buffer.starts_with(PREFACE) {
        return Ok(Read::Http2);
    }
    let head = buffer.split_to(end).freeze();
    parse(&head, most).map(|head| Read::Head(Box::new(head)))
}

/// Lines end with CR LF and with nothing else. The end is the first empty line.
fn end_of_head(buffer: &[u8], scanned: &mut usize) -> Result<Option<usize>, Bad> {
    for at in memchr::memchr_iter(b'\n', &buffer[*scanned..]) {
        let at = *scanned + at;
        if at == 0 || buffer[at - 1] != b'\r' {
            return Err(bad("a line ends with LF alone"));
        }
        if at >= 3 && &buffer[at - 3..at] == b"\r\n\r" {
            return Ok(Some(at + 1));
        }
    }
    *scanned = buffer.len();
    Ok(None)
}

fn too_long(head: &[u8], longest: usize) -> Bad {
    let line = &head[..longest.min(head.len())];
    if memchr::memchr(b'\n', line).is_none() {
        Bad {
            status: StatusCode::URI_TOO_LONG,
            why: "the request line is too long",
        }
    } else {
        TOO_LARGE
    }
}

const TOO_LARGE: Bad = Bad {
    status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    why: "the headers are too large or too many",
};

fn parse(head: &Bytes, most: usize) -> Result<Head, Bad> {
    let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(head, &mut headers) {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        Ok(_) => return Err(bad("the head has an empty line too many")),
        Err(httparse::Error::TooManyHeaders) => return Err(TOO_LARGE),
        Err(httparse::Error::Version) if names_version(head) => {
            return Err(Bad {
                status: StatusCode::HTTP_VERSION_NOT_SUPPORTED,
                why: "neither HTTP/1.1 nor HTTP/1.0",
            });
        }
        Err(_) => return Err(bad("the head is malformed")),
    }
    let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
        return Err(bad("the request line is incomplete"));
    };
    if request.headers.len() > most {
        return Err(TOO_LARGE);
    }
    // httparse lets more than one space pass between the words of the request line.
    let line = method.len() + 1 + target.len() + b" HTTP/1.1\r\n".len();
    if head.get(line - 1) != Some(&b'\n') {
        return Err(bad("the request line has spaces too many"));
    }
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| bad("the method is malformed"))?;
    let uri = target_of(head.slice_ref(target.as_bytes()), &method)?;
    let mut map = HeaderMap::with_capacity(request.headers.len() + 8);
    for header in request.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes())
            .map_err(|_| bad("a header's name is malformed"))?;
        let value = HeaderValue::from_maybe_shared(head.slice_ref(header.value))
            .map_err(|_| bad("a header's value is malformed"))?;
        map.append(name, value);
    }
    let version = if version == 0 {
        Version::HTTP_10
    } else {
        Version::HTTP_11
    };
    judge(method, uri, version, map)
}

/// The request line is one, but of another version. Otherwise it is not a request line.
fn names_version(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ').skip(2);
    matches!(
        (words.next(), words.next()),
        (
            Some([b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9']),
            None
        )
    )
}

fn target_of(target: Bytes, method: &Method) -> Result<Uri, Bad> {
    if *method == Method::CONNECT {
        return Err(Bad {
            status: StatusCode::METHOD_NOT_ALLOWED,
            why: "this is not a forward proxy",
        });
    }
    // The fragment would be dropped without a word, and backslashes are slashes to some servers.
    if target
        .iter()
        .any(|byte| matches!(byte, b'#' | b'\\') || !byte.is_ascii_graphic())
    {
        return Err(bad("the target has characters that no target has"));
    }
    let uri = Uri::from_maybe_shared(target).map_err(|_| bad("the target is malformed"))?;
    if uri
        .path_and_query()
        .is_none_or(|path| path.as_str() == "*" || !path.as_str().starts_with('/'))
    {
        return Err(bad("the target has no path"));
    }
    Ok(uri)
}

fn judge(method: Method, uri: Uri, version: Version, headers: HeaderMap) -> Result<Head, Bad> {
    let framing = framing(&headers, version)?;
    let old = version == Version::HTTP_10;
    if headers.get_all(HOST).iter().count() > 1 {
        return Err(bad("more than one Host"));
    }
    if !old && !headers.contains_key(HOST) {
        return Err(bad("no Host"));
    }
    let (mut close, mut keep, mut upgrade) = (old, false, false);
    for value in headers.get_all(CONNECTION) {
        let value = value.to_str().map_err(|_| bad("Connection is malformed"))?;
        for option in value.split(',').map(str::trim) {
            close |= option.eq_ignore_ascii_case("close");
            keep |= option.eq_ignore_ascii_case("keep-alive");
            upgrade |= option.eq_ignore_ascii_case("upgrade");
        }
    }
    let expects = match headers.get(EXPECT) {
        None => false,
        Some(value) if value.as_bytes().eq_ignore_ascii_case(b"100-continue") => {
            !old && framing != Framing::None
        }
        Some(_) => {
            return Err(Bad {
                status: StatusCode::EXPECTATION_FAILED,
                why: "an expectation that is not 100-continue",
            });
        }
    };
    // An upgrade with a body would leave open where the body ends and the other protocol begins.
    let upgrades =
        upgrade && !old && framing == Framing::None && headers.get(UPGRADE).is_some_and(may_upgrade);
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.version_mut() = version;
    *request.headers_mut() = headers;
    Ok(Head {
        parts: request.into_parts().0,
        framing,
        keep_alive: !close || (old && keep && framing != Framing::Chunked),
        expects,
        upgrades,
    })
}

/// Another version of HTTP, or TLS, would carry requests that nobody looks at: then the offer is not passed on, and the request is
/// answered as it is.
fn may_upgrade(protocols: &HeaderValue) -> bool {
    let Ok(protocols) = protocols.to_str() else {
        return false;
    };
    protocols.split(',').map(str::trim).all(|protocol| {
        let name = protocol.split('/').next().unwrap_or_default();
        !name.is_empty()
            && !["h2c", "h2", "http", "tls"]
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
    })
}

fn framing(headers: &HeaderMap, version: Version) -> Result<Framing, Bad> {
    let length = length(headers).map_err(|()| bad("Content-Length is malformed or differs"))?;
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), length) {
        (None, None) => Ok(Framing::None),
        (None, Some(0)) => Ok(Framing::None),
        (None, Some(length)) => Ok(Framing::Length(length)),
        (Some(_), Some(_)) => Err(bad("both Content-Length and Transfer-Encoding")),
        (Some(_), None) if version == Version::HTTP_10 => Err(bad("Transfer-Encoding in HTTP/1.0")),
        (Some(coding), None)
            if codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked") =>
        {
            Err(Bad {
                status: StatusCode::NOT_IMPLEMENTED,
                why: "a transfer coding that is not chunked",
            })
        }
        (Some(_), None) => Ok(Framing::Chunked),
    }
}

/// Digits only, and the same each time that it is said.
pub(crate) fn length(headers: &HeaderMap) -> Result<Option<u64>, ()> {
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        let value = value.as_bytes();
        if value.is_empty() || value.len() > 19 || !value.iter().all(u8::is_ascii_digit) {
            return Err(());
        }
        let said = value
            .iter()
            .fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        if length.replace(said).is_some_and(|before| before != said) {
            return Err(());
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests;
