//! Mail over SMTP: with TLS from the first byte on port 465, else with STARTTLS if the server has it.
//!
//! The connection is made here, so that it goes where it may, and is limited, since the library reads lines of any length.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use fairway_gitops_notifications::config::service::Email;
use fairway_gitops_notifications::message::Mail;
use fairway_outbound::Outbound;
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, AsyncTokioStream, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The port on which mail servers expect TLS from the first byte.
const TLS_PORT: u16 = 465;
/// How much a mail server may say.
const MAX_HEARD: usize = 256 << 10;
/// Ways to log in, the better one first.
const MECHANISMS: [Mechanism; 2] = [Mechanism::Plain, Mechanism::Login];

pub(super) async fn send(outbound: &Outbound, server: &Email, mail: &Mail) -> Result<(), String> {
    let message = written(server, mail)?;
    let (host, port) = (server.host.as_str(), server.port);
    let refused = |error: lettre::transport::smtp::Error| {
        let why = std::error::Error::source(&error)
            .map_or_else(|| error.to_string(), |why| format!("{error}: {why}"));
        format!("the mail server {host} did not take it: {why}")
    };
    let hello = ClientId::Domain("localhost".to_owned());
    let (stream, is_tls) = connected(outbound, host, port).await?;
    let is_near = stream.address.ip().is_loopback();
    let mut connection = AsyncSmtpConnection::connect_with_transport(Box::new(stream), &hello)
        .await
        .map_err(refused)?;
    let mut is_secret = is_tls;
    if !is_tls && connection.can_starttls() {
        let tls = TlsParameters::new(host.to_owned()).map_err(refused)?;
        connection.starttls(tls, &hello).await.map_err(refused)?;
        is_secret = true;
    }
    let offered = connection.server_info().get_auth_mechanism(&MECHANISMS);
    if let (Some((user, password)), Some(_)) = (&server.login, offered) {
        if !is_secret && !is_near {
            return Err(format!(
                "the mail server {host} has no TLS, and the password is not sent without it"
            ));
        }
        let credentials = Credentials::new(user.clone(), password.clone());
        connection
            .auth(&MECHANISMS, &credentials)
            .await
            .map_err(refused)?;
    }
    connection
        .send(message.envelope(), &message.formatted())
        .await
        .map_err(refused)?;
    // It was accepted: how they part is of no account.
    let _ = connection.quit().await;
    Ok(())
}

async fn connected(outbound: &Outbound, host: &str, port: u16) -> Result<(Limited, bool), String> {
    let is_tls = port == TLS_PORT;
    let (stream, address): (Box<dyn Duplex>, _) = match is_tls {
        true => {
            let stream = outbound
                .connect_tls(host, port)
                .await
                .map_err(|error| error.to_string())?;
            let address = stream.get_ref().0.peer_addr();
            (Box::new(stream), address)
        }
        false => {
            let stream = outbound
                .connect(host, port)
                .await
                .map_err(|error| error.to_string())?;
            let address = stream.peer_addr();
            (Box::new(stream), address)
        }
    };
    let address = address.map_err(|error| format!("{host} cannot be reached: {error}"))?;
    let stream = Limited {
        stream,
        address,
        left: MAX_HEARD,
    };
    Ok((stream, is_tls))
}

/// The mail as it goes over the wire.
fn written(server: &Email, mail: &Mail) -> Result<lettre::Message, String> {
    let mailbox = |text: &str| -> Result<Mailbox, String> {
        text.parse()
            .map_err(|error| format!("{text:?} is not an address: {error}"))
    };
    let mut message = lettre::Message::builder()
        .from(mailbox(&server.from)?)
        .subject(&mail.subject)
        .message_id(None);
    for one in &mail.to {
        message = message.to(mailbox(one)?);
    }
    let kind = match server.is_html {
        true => ContentType::TEXT_HTML,
        false => ContentType::TEXT_PLAIN,
    };
    let message = message.header(kind).body(mail.body.clone());
    message.map_err(|error| format!("the mail cannot be written: {error}"))
}

trait Duplex: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> Duplex for S {}

/// A connection of which only so much is read.
struct Limited {
    stream: Box<dyn Duplex>,
    address: SocketAddr,
    left: usize,
}

impl fmt::Debug for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)
    }
}

impl AsyncTokioStream for Limited {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

impl AsyncRead for Limited {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return Poll::Ready(Err(io::Error::other("it says too much")));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.left = self.left.saturating_sub(buffer.filled().len() - before);
        read
    }
}

impl AsyncWrite for Limited {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
