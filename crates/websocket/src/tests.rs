//! Both halves, against each other and against another implementation.

use futures::{FutureExt as _, SinkExt as _, StreamExt as _};
use proptest::prelude::*;
use tokio::io::{AsyncWriteExt as _, duplex, split};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role as Their};

use crate::frame::{Header, Opcode, Violation, mask};
use crate::{Close, Event, ReadError, Reader, Role, Writer, code};

/// The bytes of a client's frame.
fn frame(fin: bool, opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let key = [9, 8, 7, 6];
    let mut bytes = Vec::new();
    Header {
        fin,
        opcode,
        mask: Some(key),
        length: payload.len() as u64,
    }
    .write(&mut bytes);
    let start = bytes.len();
    bytes.extend(payload);
    mask(&mut bytes[start..], key, 0);
    bytes
}

/// Reads everything; data is joined.
async fn read(bytes: &[u8]) -> (Vec<u8>, Vec<String>, Option<ReadError>) {
    let mut reader = Reader::new(bytes, Role::Server);
    let (mut data, mut others) = (Vec::new(), Vec::new());
    loop {
        match reader.next().await {
            Ok(Event::Data(piece)) => data.extend(piece),
            Ok(Event::End) => return (data, others, None),
            Ok(other) => others.push(format!("{other:?}")),
            Err(error) => return (data, others, Some(error)),
        }
    }
}

#[tokio::test]
async fn messages_in_pieces_with_others_in_between() {
    let bytes = [
        frame(false, Opcode::Binary, b"one "),
        frame(true, Opcode::Ping, b"there?"),
        frame(false, Opcode::Continuation, b""),
        frame(true, Opcode::Continuation, b"two "),
        frame(true, Opcode::Pong, b""),
        frame(true, Opcode::Binary, b"three"),
        frame(true, Opcode::Close, b"\x03\xe8bye"),
    ]
    .concat();
    let (data, others, error) = read(&bytes).await;
    assert_eq!(data, b"one two three");
    let close = Close {
        code: code::NORMAL,
        reason: "bye".to_owned(),
    };
    let expected = [
        format!("{:?}", Event::Ping(b"there?".to_vec())),
        format!("{:?}", Event::Pong),
        format!("{:?}", Event::Close(close)),
    ];
    assert_eq!(others, expected);
    assert!(error.is_none(), "{error:?}");
}

#[tokio::test]
async fn wrong_orders_are_told() {
    let mut naked = Vec::new();
    Header {
        fin: true,
        opcode: Opcode::Binary,
        mask: None,
        length: 0,
    }
    .write(&mut naked);
    for (name, bytes, expected) in [
        (
            "no beginning",
            frame(true, Opcode::Continuation, b"x"),
            Violation::Order,
        ),
        (
            "two beginnings",
            [
                frame(false, Opcode::Binary, b"x"),
                frame(true, Opcode::Binary, b"y"),
            ]
            .concat(),
            Violation::Order,
        ),
        ("not masked", naked, Violation::NotMasked),
        (
            "half a code",
            frame(true, Opcode::Close, b"\x03"),
            Violation::CloseCode,
        ),
        (
            "a code for nobody",
            frame(true, Opcode::Close, b"\x03\xed"),
            Violation::CloseCode,
        ),
    ] {
        match read(&bytes).await.2 {
            Some(ReadError::Violation(found)) => assert_eq!(found, expected, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    let (_, _, error) = read(&frame(true, Opcode::Text, b"x")).await;
    assert_eq!(error.unwrap().code(), code::UNSUPPORTED);
    let masked = frame(true, Opcode::Binary, b"x");
    let error = Reader::new(masked.as_slice(), Role::Client).next().await.err();
    assert!(matches!(error, Some(ReadError::Violation(Violation::Masked))));
}

#[tokio::test]
async fn a_connection_that_breaks_off_ends() {
    let whole = frame(true, Opcode::Binary, b"hello");
    for cut in 0..whole.len() {
        let (data, others, error) = read(&whole[..cut]).await;
        assert!(b"hello".starts_with(&data), "{cut}");
        assert!(others.is_empty() && error.is_none(), "{cut}");
    }
}

#[tokio::test]
async fn a_message_may_be_larger_than_any_buffer() {
    let (ours, mut theirs) = duplex(1 << 10);
    let message = vec![7; 1 << 20];
    let bytes = frame(true, Opcode::Binary, &message);
    let sending = tokio::spawn(async move { theirs.write_all(&bytes).await });
    let mut reader = Reader::new(ours, Role::Server);
    let mut heard = 0;
    while let Event::Data(piece) = reader.next().await.unwrap() {
        assert!(piece.iter().all(|byte| *byte == 7));
        heard += piece.len();
    }
    assert_eq!(heard, message.len());
    sending.await.unwrap().unwrap();
}

#[tokio::test]
async fn another_implementation_understands_us_and_is_understood() {
    for (role, their) in [(Role::Server, Their::Client), (Role::Client, Their::Server)] {
        let (ours, theirs) = duplex(64 << 10);
        let mut peer = WebSocketStream::from_raw_socket(theirs, their, None).await;
        let (read, write) = split(ours);
        let (mut reader, mut writer) = (Reader::new(read, role), Writer::new(write, role));
        for length in [0, 1, 125, 126, 65_535, 65_536] {
            let message = vec![42; length];
            let (sent, heard) = tokio::join!(writer.data(&message), peer.next());
            sent.unwrap();
            assert_eq!(heard.unwrap().unwrap(), Message::binary(message.clone()));
            let mut back = Vec::<u8>::new();
            let reading = async {
                while back.len() < length {
                    match reader.next().await.unwrap() {
                        Event::Data(piece) => back.extend(piece),
                        other => panic!("{other:?}"),
                    }
                }
            };
            let (sent, ()) = tokio::join!(peer.send(Message::binary(message.clone())), reading);
            sent.unwrap();
            assert_eq!(back, message, "{role:?} {length}");
        }
        writer.ping().await.unwrap();
        assert!(matches!(peer.next().await, Some(Ok(Message::Ping(_)))));
        peer.flush().await.unwrap();
        assert_eq!(reader.next().await.unwrap(), Event::Pong);
        let long = "ä".repeat(100);
        writer.close(code::END_OF_INPUT, &long).await.unwrap();
        let Some(Ok(Message::Close(Some(CloseFrame { code, reason })))) = peer.next().await else {
            panic!("no close");
        };
        assert_eq!(u16::from(code), code::END_OF_INPUT);
        assert_eq!(reason.as_str(), "ä".repeat(61));
        // Its answer goes out when it is asked for more.
        let _ = peer.next().now_or_never();
        assert!(matches!(reader.next().await.unwrap(), Event::Close(close) if close.code == 4000));
    }
}

proptest! {
    #[test]
    fn whatever_comes_is_read_to_its_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (data, _, _) = runtime.block_on(read(&bytes));
        prop_assert!(data.len() <= bytes.len());
    }

    #[test]
    fn data_is_the_same_however_it_is_cut(
        pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..8),
        step in 1_usize..64,
    ) {
        let last = pieces.len() - 1;
        let frames: Vec<Vec<u8>> = pieces
            .iter()
            .enumerate()
            .map(|(at, piece)| {
                frame(at == last, if at == 0 { Opcode::Binary } else { Opcode::Continuation }, piece)
            })
            .collect();
        let bytes = frames.concat();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let heard = runtime.block_on(async {
            let (ours, mut theirs) = duplex(32);
            let sending = async move {
                for part in bytes.chunks(step) {
                    theirs.write_all(part).await.unwrap();
                }
            };
            let mut reader = Reader::new(ours, Role::Server);
            let mut heard = Vec::<u8>::new();
            let reading = async {
                while let Event::Data(piece) = reader.next().await.unwrap() {
                    heard.extend(piece);
                }
            };
            tokio::join!(sending, reading);
            heard
        });
        prop_assert_eq!(heard, pieces.concat());
    }
}
