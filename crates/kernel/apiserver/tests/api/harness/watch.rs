//! A watch, read line by line.

use std::collections::VecDeque;
use std::time::Duration;

use fairway_kernel_apiserver::http::body::ResponseBody;
use http_body_util::BodyExt;
use serde_json::Value;

use super::server::PATIENCE;

/// An open watch.
pub(crate) struct Watch {
    body: ResponseBody,
    rest: Vec<u8>,
    lines: VecDeque<Value>,
}

impl Watch {
    pub(super) fn new(body: ResponseBody) -> Self {
        Self {
            body,
            rest: Vec::new(),
            lines: VecDeque::new(),
        }
    }

    /// The next event; `None` when the watch has ended. Fails if neither comes.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        self.next_within(PATIENCE)
            .await
            .expect("an event or the end in time")
    }

    /// The same, or an error if nothing comes in this time.
    pub(crate) async fn next_within(
        &mut self,
        time: Duration,
    ) -> Result<Option<Value>, tokio::time::error::Elapsed> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Ok(Some(line));
            }
            let Some(frame) = tokio::time::timeout(time, self.body.frame()).await? else {
                assert!(
                    self.rest.is_empty(),
                    "a half line at the end: {}",
                    String::from_utf8_lossy(&self.rest)
                );
                return Ok(None);
            };
            let Ok(data) = frame.unwrap().into_data() else {
                continue;
            };
            self.rest.extend_from_slice(&data);
            while let Some(end) = self.rest.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                self.lines
                    .push_back(serde_json::from_slice(&line).expect("each line is an event"));
            }
        }
    }

    /// The next event as `TYPE name`.
    pub(crate) async fn step(&mut self) -> String {
        match self.next().await {
            Some(event) => shown(&event),
            None => "END".to_owned(),
        }
    }

    /// As many events, each as `TYPE name`.
    pub(crate) async fn steps(&mut self, count: usize) -> Vec<String> {
        let mut steps = Vec::new();
        for _ in 0..count {
            steps.push(self.step().await);
        }
        steps
    }

    /// Whether nothing comes for a short while.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        self.next_within(Duration::from_millis(100)).await.is_err()
    }
}

/// `TYPE name`.
pub(crate) fn shown(event: &Value) -> String {
    let word = event["type"].as_str().unwrap();
    match event["object"]["metadata"]["name"].as_str() {
        Some(name) => format!("{word} {name}"),
        None => word.to_owned(),
    }
}
