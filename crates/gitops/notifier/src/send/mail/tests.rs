//! Mail to a server that says what a test wants it to say.

use std::time::{Duration, Instant};

use fairway_gitops_notifications::config::service::Email;
use fairway_gitops_notifications::message::Mail;
use fairway_outbound::{AllowedHosts, Outbound};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::send;

/// What a server says to EHLO beside its name, and to MAIL.
#[derive(Clone, Copy)]
struct Manner {
    offers: &'static str,
    to_mail: &'static str,
}

const PLAIN: Manner = Manner {
    offers: "250 8BITMIME\r\n",
    to_mail: "250 ok\r\n",
};

/// Serves one connection; what it was told, line by line.
async fn server(manner: Manner) -> (u16, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (read, mut write) = stream.into_split();
        let mut lines = BufReader::new(read).lines();
        let mut told = Vec::new();
        let mut is_content = false;
        let _ = write.write_all(b"220 test\r\n").await;
        while let Ok(Some(line)) = lines.next_line().await {
            told.push(line.clone());
            let word = line.split(' ').next().unwrap_or("").to_ascii_uppercase();
            let answer = match word.as_str() {
                "." => {
                    is_content = false;
                    "250 taken\r\n"
                }
                _ if is_content => continue,
                "EHLO" => &format!("250-test\r\n{}", manner.offers),
                "AUTH" => "235 welcome\r\n",
                "MAIL" => manner.to_mail,
                "DATA" => {
                    is_content = true;
                    "354 go on\r\n"
                }
                "QUIT" => "221 bye\r\n",
                _ => "250 ok\r\n",
            };
            if write.write_all(answer.as_bytes()).await.is_err() {
                break;
            }
        }
        told
    });
    (port, serving)
}

fn outbound() -> Outbound {
    Outbound::new(AllowedHosts::parse("loopback").unwrap())
}

fn email(port: u16) -> Email {
    Email {
        host: "127.0.0.1".to_owned(),
        port,
        from: "Fairway <fairway@example.com>".to_owned(),
        ..Email::default()
    }
}

fn mail() -> Mail {
    Mail {
        to: vec!["anna@example.com".to_owned(), "bob@example.com".to_owned()],
        subject: "Grüße\r\nBcc: everybody@example.com".to_owned(),
        body: "first line\n.hidden\nlast ✓".to_owned(),
    }
}

#[tokio::test]
async fn mails_are_taken() {
    let (port, serving) = server(PLAIN).await;
    send(&outbound(), &email(port), &mail()).await.unwrap();
    let told = serving.await.unwrap();
    assert_eq!(told[1], "MAIL FROM:<fairway@example.com>");
    assert_eq!(
        &told[2..5],
        ["RCPT TO:<anna@example.com>", "RCPT TO:<bob@example.com>", "DATA"]
    );
    assert!(
        told.iter()
            .any(|line| line == "Content-Type: text/plain; charset=utf-8"),
        "{told:?}"
    );
    assert!(
        told.iter().any(|line| line.starts_with("Subject: =?utf-8?")),
        "{told:?}"
    );
    // Nobody gets a header into it that is not the sender's.
    assert!(!told.iter().any(|line| line.starts_with("Bcc:")), "{told:?}");
    assert_eq!(told.last().map(String::as_str), Some("QUIT"));
}

#[tokio::test]
async fn html_and_a_login() {
    let manner = Manner {
        offers: "250-8BITMIME\r\n250 AUTH PLAIN LOGIN\r\n",
        ..PLAIN
    };
    let (port, serving) = server(manner).await;
    let server = Email {
        is_html: true,
        login: Some(("me".to_owned(), "pass".to_owned())),
        ..email(port)
    };
    send(&outbound(), &server, &mail()).await.unwrap();
    let told = serving.await.unwrap();
    // \0me\0pass
    assert_eq!(told[1], "AUTH PLAIN AG1lAHBhc3M=");
    assert!(
        told.iter()
            .any(|line| line == "Content-Type: text/html; charset=utf-8"),
        "{told:?}"
    );
}

#[tokio::test]
async fn refusals_are_told() {
    let manner = Manner {
        to_mail: "550 5.7.1 not for strangers\r\n",
        ..PLAIN
    };
    let (port, _serving) = server(manner).await;
    let why = send(&outbound(), &email(port), &mail()).await.unwrap_err();
    assert!(
        why.contains("127.0.0.1") && why.contains("not for strangers"),
        "{why}"
    );
    let why = send(&Outbound::default(), &email(port), &mail())
        .await
        .unwrap_err();
    assert!(why.contains("--webhook-allowed-hosts"), "{why}");
    for (from, to) in [
        ("nobody", "a@b.c"),
        ("a@b.c", "not an address"),
        ("a@b.c", "a@b.c\r\nDATA"),
    ] {
        let server = Email {
            from: from.to_owned(),
            ..email(port)
        };
        let mail = Mail {
            to: vec![to.to_owned()],
            ..mail()
        };
        let why = send(&outbound(), &server, &mail).await.unwrap_err();
        assert!(why.contains("is not an address"), "{why}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_stop_talking_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let talking = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
    });
    let begun = Instant::now();
    let why = send(&outbound(), &email(port), &mail()).await.unwrap_err();
    assert!(why.contains("too much"), "{why}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    talking.await.unwrap();
}
