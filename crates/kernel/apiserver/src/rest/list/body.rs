//! The body of a list: the shared bytes of its objects, strung together while they are sent.
//!
//! Nothing is serialised here. Chunks are filled as the connection takes them, so a list of ten thousand objects holds
//! references to the objects and one chunk, not a second copy of everything.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use http::Response;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue, VARY};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

use super::json_type;
use crate::cache::Sheet;
use crate::http::body::{BoxError, ResponseBody, full};
use crate::http::gzip;

/// Bytes given to the connection at once. Larger blocks would each be mapped anew by the allocator and leave the caches.
const CHUNK: usize = 64 * 1024;
/// Below this, compressing costs more than it saves; upstream has the same limit.
const GZIP_FROM: usize = 128 * 1024;

/// The objects of a list.
pub(super) enum Items {
    /// As the cache has them.
    Shared {
        /// The objects.
        objects: Arc<Sheet>,
        /// Items of built-in lists do not repeat their type.
        untyped: bool,
    },
    /// Made for this request.
    Own(Vec<Bytes>),
}

impl Items {
    fn len(&self) -> usize {
        match self {
            Self::Shared { objects, .. } => objects.len(),
            Self::Own(objects) => objects.len(),
        }
    }

    /// An item, in two parts that follow each other.
    fn get(&self, index: usize) -> Option<(&'static [u8], &[u8])> {
        match self {
            Self::Shared {
                objects,
                untyped: true,
            } => objects.get(index).map(|o| (&b"{"[..], o.untyped())),
            Self::Shared {
                objects,
                untyped: false,
            } => objects.get(index).map(|o| (&b""[..], &o.bytes()[..])),
            Self::Own(objects) => objects.get(index).map(|o| (&b""[..], &o[..])),
        }
    }

    fn total(&self) -> usize {
        match self {
            // Each with its opening brace.
            Self::Shared {
                objects,
                untyped: true,
            } => objects.len() + objects.untyped_bytes(),
            Self::Shared {
                objects,
                untyped: false,
            } => objects.bytes(),
            Self::Own(objects) => objects.iter().map(Bytes::len).sum(),
        }
    }
}

struct ListBody {
    head: Bytes,
    items: Items,
    next: usize,
    left: usize,
    started: bool,
    done: bool,
}

const TAIL: &[u8] = b"]}\n";

impl ListBody {
    fn new(head: Bytes, items: Items) -> Self {
        let commas = items.len().saturating_sub(1);
        let left = head.len() + items.total() + commas + TAIL.len();
        Self {
            head,
            items,
            next: 0,
            left,
            started: false,
            done: false,
        }
    }

    fn compress(mut self, pieces: &gzip::Pieces) -> Vec<u8> {
        match &self.items {
            Items::Shared { objects, untyped } => gzip::list(pieces, &self.head, objects, *untyped, TAIL),
            Items::Own(_) => {
                let all: Vec<u8> = std::iter::from_fn(|| self.chunk()).flatten().collect();
                gzip::once(&all)
            }
        }
    }

    /// The next chunk; `None` at the end.
    fn chunk(&mut self) -> Option<Bytes> {
        if self.done {
            return None;
        }
        let mut out = BytesMut::with_capacity(CHUNK.min(self.left));
        if !self.started {
            out.put_slice(&self.head);
            self.started = true;
        }
        while let Some((before, item)) = self.items.get(self.next) {
            if !out.is_empty() && out.len() + item.len() + 2 > CHUNK {
                self.left -= out.len();
                return Some(out.freeze());
            }
            if self.next > 0 {
                out.put_u8(b',');
            }
            out.put_slice(before);
            out.put_slice(item);
            self.next += 1;
        }
        out.put_slice(TAIL);
        self.done = true;
        self.left -= out.len();
        Some(out.freeze())
    }
}

impl Body for ListBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(self.chunk().map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.done
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

/// The response of a list.
pub(super) fn response(head: Bytes, items: Items, gzip: Option<&gzip::Pieces>) -> Response<ResponseBody> {
    let body = ListBody::new(head, items);
    let mut response = if let Some(pieces) = gzip.filter(|_| body.left >= GZIP_FROM) {
        let compressed = body.compress(pieces);
        let length = HeaderValue::from(compressed.len());
        let mut response = Response::new(full(compressed));
        response
            .headers_mut()
            .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response.headers_mut().insert(CONTENT_LENGTH, length);
        response
    } else {
        let length = HeaderValue::from(body.left);
        let mut response = Response::new(body.boxed_unsync());
        response.headers_mut().insert(CONTENT_LENGTH, length);
        response
    };
    let headers = response.headers_mut();
    let (name, value) = json_type();
    headers.insert(name, value);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_known_before_and_right_after() {
        let items = Items::Own(
            (0..5_000)
                .map(|i| Bytes::from(format!("{{\"n\":{i}}}")))
                .collect(),
        );
        let mut body = ListBody::new(Bytes::from_static(b"{\"items\":["), items);
        let promised = body.left;
        let sent: Vec<u8> = std::iter::from_fn(|| body.chunk()).flatten().collect();
        assert_eq!(sent.len(), promised);
        let value: serde_json::Value = serde_json::from_slice(&sent).unwrap();
        assert_eq!(value["items"][4_999]["n"], 4_999);
    }

    #[test]
    fn an_empty_list_is_a_list() {
        let mut body = ListBody::new(Bytes::from_static(b"{\"items\":["), Items::Own(Vec::new()));
        let sent: Vec<u8> = std::iter::from_fn(|| body.chunk()).flatten().collect();
        assert_eq!(sent, b"{\"items\":[]}\n");
    }
}
