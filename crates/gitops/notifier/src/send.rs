//! Messages on their way. Errors are sentences for whoever subscribed: they name the host, and no address that may hold a secret.

mod mail;
mod web;

use std::time::Duration;

use fairway_gitops_notifications::config::Service;
use fairway_gitops_notifications::message::Message;
use fairway_outbound::Outbound;

/// How long one message may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Sends a message through a service.
pub async fn send(outbound: &Outbound, service: &Service, message: &Message) -> Result<(), String> {
    match (message, service) {
        (Message::Http(request), _) => web::send(outbound, request, TIMEOUT).await,
        (Message::Mail(mail), Service::Email(server)) => {
            let sending = mail::send(outbound, server, mail);
            match tokio::time::timeout(TIMEOUT, sending).await {
                Ok(sent) => sent,
                Err(_) => {
                    let (host, seconds) = (&server.host, TIMEOUT.as_secs());
                    Err(format!(
                        "the mail server {host} has not taken it within {seconds} s"
                    ))
                }
            }
        }
        (Message::Mail(_), _) => Err("a mail goes through a service of type email only".to_owned()),
    }
}
