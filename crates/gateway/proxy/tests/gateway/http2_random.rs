//! HTTP/2 by chance: conversations in which everything is right, and frames in which nothing is.

use std::collections::VecDeque;

use fairway_gateway_routes::table::BackendProtocol;
use proptest::prelude::*;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::backend::Backend;
use crate::frames::{
    CONTINUATION, Client, DATA, END_HEADERS, END_STREAM, HEADERS, PADDED, PING, PRIORITY, SETTINGS,
    WINDOW_UPDATE, frame, head, literals,
};
use crate::http2_hostile::{SOON, wrong};
use crate::raw;
use crate::recorder::{Recorder, recorded};
use crate::rig::{Rig, cluster, http_table, rule};

/// One thing of a connection that is as it should be.
#[derive(Debug, Clone)]
enum Act {
    Request {
        /// None: there is no body.
        body: Option<Vec<Vec<u8>>>,
        length: bool,
        trailers: bool,
        /// Where the block of headers is cut.
        cuts: Vec<usize>,
        padding: Option<u8>,
    },
    Ping,
    Room(u32),
    Priority,
    Settings,
    /// Of a kind that nobody knows, which has to be ignored.
    Unknown(u8, Vec<u8>),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let pieces = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..4);
    let request = (
        proptest::option::of(pieces),
        any::<bool>(),
        any::<bool>(),
        proptest::collection::vec(1_usize..60, 0..3),
        proptest::option::of(0_u8..20),
    )
        .prop_map(|(body, length, trailers, cuts, padding)| Act::Request {
            body,
            length,
            trailers,
            cuts,
            padding,
        });
    let act = prop_oneof![
        4 => request,
        1 => Just(Act::Ping),
        1 => (1_u32..100_000).prop_map(Act::Room),
        1 => Just(Act::Priority),
        1 => Just(Act::Settings),
        1 => (20_u8..255, proptest::collection::vec(any::<u8>(), 0..20)).prop_map(|(kind, bytes)| Act::Unknown(kind, bytes)),
    ];
    proptest::collection::vec(act, 1..8)
}

/// The frames of a request, apart, so that others can come between those that may be parted.
fn written(stream: u32, path: &str, act: &Act) -> Vec<Vec<u8>> {
    let Act::Request {
        body,
        length,
        trailers,
        cuts,
        padding,
    } = act
    else {
        return Vec::new();
    };
    let total = body.iter().flatten().map(Vec::len).sum::<usize>().to_string();
    let more: &[(&str, &str)] = match (length, body) {
        (true, Some(_)) => &[("content-length", &total), ("x", "y")],
        _ => &[("x", "y")],
    };
    let mut block = head(if body.is_some() { "POST" } else { "GET" }, path, more);
    let mut parts = Vec::new();
    for cut in cuts {
        let rest = block.split_off((*cut).min(block.len()));
        parts.push(std::mem::replace(&mut block, rest));
    }
    parts.push(block);
    let ends = |last: bool, flag: u8| if last { flag } else { 0 };
    let mut heads = Vec::new();
    let last = parts.len() - 1;
    for (at, part) in parts.iter().enumerate() {
        let kind = if at == 0 { HEADERS } else { CONTINUATION };
        let mut flags = ends(at == last, END_HEADERS);
        let mut payload = part.clone();
        if at == 0 {
            flags |= ends(body.is_none(), END_STREAM);
            if let Some(padding) = padding {
                flags |= PADDED;
                payload.insert(0, *padding);
                payload.extend(vec![0; usize::from(*padding)]);
            }
        }
        heads.extend(frame(kind, flags, stream, &payload));
    }
    let mut frames = vec![heads];
    let Some(pieces) = body else {
        return frames;
    };
    frames.extend(pieces.iter().map(|piece| frame(DATA, 0, stream, piece)));
    if *trailers {
        let block = literals(&[("x-trailer", "1")]);
        frames.push(frame(HEADERS, END_HEADERS | END_STREAM, stream, &block));
    } else {
        frames.push(frame(DATA, END_STREAM, stream, &[]));
    }
    frames
}

/// A conversation in which everything is right, however it is cut, padded and mixed; then something wrong. Each request
/// reaches the backend once and whole, and is answered; what is wrong never gets there; the next client is served.
#[test]
fn random_conversations() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (recorder, rigs) = runtime.block_on(async {
        let recorder = Recorder::start().await;
        let rigs =
            [BackendProtocol::Http1, BackendProtocol::Http2].map(|protocol| recorded(&recorder, protocol));
        (recorder, rigs)
    });
    let wrong = wrong();
    let cases = std::env::var("PROPTEST_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse().ok()).unwrap_or(64);
    let config = ProptestConfig::with_cases(cases);
    let last = proptest::option::of(0..wrong.len());
    proptest!(config, |(acts in acts(), last in last, mix in any::<u64>(), to in 0_usize..2)| {
        let rig = &rigs[to];
        let mut waiting: Vec<VecDeque<Vec<u8>>> = Vec::new();
        let mut expected = Vec::new();
        let mut bytes = Vec::new();
        let mut chance = mix | 1;
        let mut next = move || { chance ^= chance << 13; chance ^= chance >> 7; chance ^= chance << 17; chance as usize };
        let mut stream = 3;
        for act in &acts {
            match act {
                Act::Request { body, .. } => {
                    let path = format!("/good/{stream}");
                    let mut frames: VecDeque<_> = written(stream, &path, act).into();
                    // Heads come in the order of their streams.
                    bytes.extend(frames.pop_front().unwrap());
                    waiting.push(frames);
                    expected.push((stream, path, body.iter().flatten().flatten().copied().collect::<Vec<u8>>()));
                    stream += 2;
                }
                Act::Ping => bytes.extend(frame(PING, 0, 0, &[7; 8])),
                Act::Room(room) => bytes.extend(frame(WINDOW_UPDATE, 0, 0, &room.to_be_bytes())),
                Act::Priority => bytes.extend(frame(PRIORITY, 0, stream + 100, &[0, 0, 0, 0, 9])),
                Act::Settings => bytes.extend(frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0])),
                Act::Unknown(kind, payload) => bytes.extend(frame(*kind, 0xff, 0, payload)),
            }
            if !waiting.is_empty() && next() % 2 == 0 {
                let at = next() % waiting.len();
                if let Some(frame) = waiting[at].pop_front() {
                    bytes.extend(frame);
                }
            }
        }
        bytes.extend(waiting.into_iter().flatten().flatten());
        let is_done = |client: &Client| expected.iter().all(|(stream, ..)| client.streams.get(stream).is_some_and(|it| it.ended));
        let client = runtime.block_on(async {
            let mut client = Client::connect(rig.door, &[]).await;
            client.send(&bytes).await;
            client.until(SOON, is_done).await;
            client
        });
        for (stream, path, body) in &expected {
            let answered = client.streams.get(stream).cloned().unwrap_or_default();
            let answer = String::from_utf8_lossy(&answered.body).into_owned();
            prop_assert_eq!(answered.status, Some(200), "stream {}: {:?}", stream, answered);
            prop_assert_eq!(answer.trim_end(), format!("{path} {}", body.len()));
        }
        let mut got = recorder.take();
        got.sort();
        let mut sent: Vec<_> = expected.iter().map(|(_, path, body)| (path.clone(), body.clone())).collect();
        sent.sort();
        prop_assert_eq!(got, sent, "each once and whole");
        if let Some(at) = last {
            // On a connection of its own with others before it: an older stream is closed for good.
            let refused = runtime.block_on(async {
                let mut client = Client::connect(rig.door, &[]).await;
                client.send(&wrong[at].1).await;
                let refused = |client: &Client| client.over || client.streams.get(&1).is_some_and(|it| it.reset || it.ended);
                wrong[at].0 == "given up in the middle" || client.until(SOON, refused).await
            });
            prop_assert!(refused, "{}", wrong[at].0);
            let got = recorder.take();
            prop_assert!(got.is_empty(), "{}: {got:?}", wrong[at].0);
        }
        let answer = runtime.block_on(raw::get(rig.door, "/still"));
        prop_assert_eq!(raw::status(&answer), 200, "it lives on");
        recorder.take();
    });
}

/// Random frames at a door: the proxy lives on, and the backend gets no more requests than there were heads.
#[test]
fn random_frames() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (backend, rig) = runtime.block_on(async {
        let backend = Backend::start("web").await;
        let rig = Rig::new(http_table(
            vec![("/", rule("web"))],
            vec![cluster("web", &[backend.address])],
        ));
        (backend, rig)
    });
    let name = prop_oneof![
        Just(":method"),
        Just(":path"),
        Just(":scheme"),
        Just(":authority"),
        Just("host"),
        Just("content-length"),
        Just("transfer-encoding"),
        Just("connection"),
        Just("te"),
        Just("X-Upper"),
        Just("a b"),
        Just(""),
    ]
    .prop_map(str::to_owned);
    let value = prop_oneof![
        Just("GET".to_owned()),
        Just("/".to_owned()),
        Just("http".to_owned()),
        Just("a.example".to_owned()),
        Just("chunked".to_owned()),
        Just("3".to_owned()),
        Just("x\r\ninjected: 1".to_owned()),
        "[ -~\r\n\t\0]{0,12}",
    ];
    let odd = proptest::collection::vec((name, value), 0..4);
    let head = (odd, 0_u8..2, any::<bool>()).prop_map(|(odd, end, whole)| {
        let usual = [
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "a.example"),
        ];
        let usual = usual
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let headers: Vec<(String, String)> = usual.filter(|_| whole).chain(odd).collect();
        (1, 4 | end, literals(&headers))
    });
    let other = (
        0_u8..11,
        any::<u8>(),
        proptest::collection::vec(any::<u8>(), 0..16),
    );
    let frames = proptest::collection::vec((prop_oneof![head, other], 0_u32..8), 1..8);
    let cases = std::env::var("PROPTEST_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse().ok()).unwrap_or(64);
    // Counted over all cases: a client that is gone leaves a request on its way, which arrives in a later case.
    let heads = std::cell::Cell::new(0);
    proptest!(ProptestConfig::with_cases(cases), |(frames in frames)| {
        let mut bytes = crate::frames::PREFACE.to_vec();
        bytes.extend(frame(4, 0, 0, &[]));
        for ((kind, flags, payload), stream) in &frames {
            heads.set(heads.get() + usize::from(*kind == HEADERS));
            bytes.extend(frame(*kind, *flags, *stream, payload));
        }
        let answer = runtime.block_on(async {
            let mut stream = TcpStream::connect(rig.door).await.unwrap();
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
            raw::read(&mut stream).await
        });
        prop_assert!(backend.seen() <= heads.get(), "{frames:?}");
        prop_assert!(!answer.contains("injected"), "{frames:?}");
    });
    let answer = runtime.block_on(raw::get(rig.door, "/still"));
    assert_eq!(raw::status(&answer), 200, "it lives on");
}
