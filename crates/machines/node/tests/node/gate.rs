//! Answers of the API that are held back: what was read is old when it arrives, as happens on a busy machine, but not by chance.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use fairway_kernel_apiserver::client::InProcess;
use http::{Method, Request};
use kube::client::Body;
use tokio::sync::watch;
use tower::Service;

/// Which answers are held, and those that are waited for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate {
    held: Arc<Mutex<Option<Held>>>,
}

#[derive(Debug, Clone)]
struct Held {
    path: String,
    /// Whether somebody has been answered who does not know yet.
    asked: watch::Sender<bool>,
    open: watch::Receiver<bool>,
}

/// Holds answers until it is opened.
#[derive(Debug)]
pub(crate) struct Closed {
    asked: watch::Receiver<bool>,
    open: watch::Sender<bool>,
}

impl Closed {
    /// Waits until an answer is held.
    pub(crate) async fn asked(&mut self) {
        self.asked.wait_for(|it| *it).await.unwrap();
    }

    /// Lets answers go.
    pub(crate) fn open(self) {
        self.open.send_replace(true);
    }
}

impl Gate {
    /// Holds what is answered to whoever reads this path.
    pub(crate) fn close(&self, path: &str) -> Closed {
        let (asked, has_asked) = watch::channel(false);
        let (open, is_open) = watch::channel(false);
        *self.held.lock().unwrap() = Some(Held {
            path: path.to_owned(),
            asked,
            open: is_open,
        });
        Closed {
            asked: has_asked,
            open,
        }
    }
}

/// The API behind a gate.
#[derive(Clone)]
pub(crate) struct Gated {
    pub(crate) api: InProcess,
    pub(crate) gate: Gate,
}

impl Service<Request<Body>> for Gated {
    type Response = <InProcess as Service<Request<Body>>>::Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let held = self.gate.held.lock().unwrap().clone();
        let held =
            held.filter(|it| request.method() == Method::GET && request.uri().path().ends_with(&it.path));
        let answering = self.api.call(request);
        Box::pin(async move {
            let answer = answering.await;
            if let Some(mut held) = held {
                held.asked.send_replace(true);
                // One that is dropped is open.
                let _ = held.open.wait_for(|it| *it).await;
            }
            answer
        })
    }
}
