//! A console whose guest is played by the test.

use tokio::net::UnixListener;

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

async fn accepted(listener: &UnixListener) -> UnixStream {
    tokio::time::timeout(PATIENCE, listener.accept())
        .await
        .unwrap()
        .unwrap()
        .0
}

async fn until(reader: &mut Reader, wanted: &str) -> String {
    let mut text = String::from_utf8_lossy(&reader.scrollback).into_owned();
    while !text.contains(wanted) {
        let piece = tokio::time::timeout(PATIENCE, reader.next())
            .await
            .unwrap()
            .unwrap();
        text.push_str(&String::from_utf8_lossy(&piece));
    }
    text
}

#[tokio::test]
async fn everybody_sees_and_one_types() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join(names::LIVE)).unwrap();
    let listener = UnixListener::bind(directory.path().join(names::SERIAL)).unwrap();
    let console = Console::open(directory.path()).unwrap();
    let mut guest = accepted(&listener).await;
    let mut early = console.reader();
    guest.write_all(b"login: ").await.unwrap();
    assert_eq!(until(&mut early, "login: ").await, "login: ");
    let mut late = console.reader();
    assert_eq!(late.scrollback, b"login: ");
    guest.write_all(b"root\r\n").await.unwrap();
    assert_eq!(until(&mut late, "root").await, "login: root\r\n");

    let one = console.writer(false).unwrap();
    assert!(console.writer(false).is_none(), "somebody types already");
    assert!(one.write("one".into()).await);
    let mut heard = [0; 3];
    guest.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"one");
    let relieved = tokio::time::timeout(Duration::from_millis(20), one.relieved()).await;
    assert!(relieved.is_err(), "nobody has taken over yet");
    let other = console.writer(true).unwrap();
    tokio::time::timeout(PATIENCE, one.relieved()).await.unwrap();
    assert!(!one.write("no more".into()).await);
    drop(one);
    assert!(other.write("two".into()).await);
    guest.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"two");
    drop(other);
    assert!(console.writer(false).is_some());
}

#[tokio::test]
async fn a_broken_connection_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join(names::LIVE)).unwrap();
    let listener = UnixListener::bind(directory.path().join(names::SERIAL)).unwrap();
    let console = Console::open(directory.path()).unwrap();
    let mut guest = accepted(&listener).await;
    guest.write_all(b"before ").await.unwrap();
    until(&mut console.reader(), "before ").await;
    drop(guest);
    let mut guest = accepted(&listener).await;
    guest.write_all(b"after").await.unwrap();
    assert_eq!(until(&mut console.reader(), "after").await, "before after");
    // Another Fairway finds what this one has kept.
    drop(console);
    let again = Console::open(directory.path()).unwrap();
    assert_eq!(again.scrollback(), b"before after");
    assert_eq!(kept(directory.path()), b"before after");
    // One that keeps nothing has nothing, and leaves what is there alone.
    assert_eq!(Console::open_forgetful(directory.path()).scrollback(), b"");
    assert_eq!(kept(&directory.path().join("none")), b"");
}
