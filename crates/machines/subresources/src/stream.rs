//! Bytes between a WebSocket and a machine.
//!
//! One task for each connection, two directions, one piece of at most 16 KiB in each: who does not read is not read
//! from, so a guest that floods its console waits for the person who looks at it, and nobody's memory grows.
//!
//! Ends. A machine that ends its side: a forwarded port is closed as WebSockets are; a console or a screen is hung up, because
//! virtctl tells people why that may be only then. A client that closes is answered at once; one that says
//! [`code::END_OF_INPUT`] still gets what the machine has to say.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fairway_apiservice::Upgraded;
use fairway_fabric::Connection;
use fairway_websocket::{Event, Reader, Role, Writer, code};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf, split};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// How much is taken from the machine at once.
const PIECE: usize = 16 << 10;
/// How often the client is asked whether it is there.
const PING: Duration = Duration::from_secs(20);
/// How long a client may take to answer a close.
const LINGER: Duration = Duration::from_secs(5);
/// How long a machine may say nothing to a client that has said everything.
const LAST_WORDS: Duration = Duration::from_secs(300);

/// How a connection ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// A client that is silent for so long is gone.
    pub(crate) silence: Duration,
    /// The machine's end is the end of the connection, without a word.
    pub(crate) hangs_up: bool,
}

impl Manner {
    /// A console or a screen. Somebody may look at what is on it, with the client stopped.
    pub(crate) const SEAT: Self = Self {
        silence: Duration::from_secs(600),
        hangs_up: true,
    };
    /// A forwarded port. As long as upstream's.
    pub(crate) const PORT: Self = Self {
        silence: Duration::from_secs(60),
        hangs_up: false,
    };
}

/// What the half that reads has to tell the half that writes.
#[derive(Debug)]
enum Note {
    Pong(Vec<u8>),
    /// The client will send nothing more.
    EndOfInput,
    /// The client closes.
    Close,
    /// The client broke the rules.
    Wrong(u16, String),
    /// The client is gone.
    Gone,
}

/// When something was last heard of the client.
struct Pulse {
    start: Instant,
    /// Milliseconds after the start.
    heard: AtomicU64,
    /// The machine does not take what the client sent, so nothing can be heard.
    is_deaf: AtomicBool,
}

impl Pulse {
    fn beat(&self) {
        let after = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard.store(after, Ordering::Relaxed);
    }

    fn silent_for(&self) -> Duration {
        if self.is_deaf.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        let heard = Duration::from_millis(self.heard.load(Ordering::Relaxed));
        self.start.elapsed().saturating_sub(heard)
    }
}

/// Carries bytes until one of both ends.
pub(crate) async fn carry(client: Upgraded, machine: Box<dyn Connection>, manner: Manner) {
    let (from_client, to_client) = split(client);
    let (from_machine, to_machine) = split(machine);
    let (note, notes) = mpsc::channel(4);
    let pulse = Pulse {
        start: Instant::now(),
        heard: AtomicU64::new(0),
        is_deaf: AtomicBool::new(false),
    };
    let inward = inward(Reader::new(from_client, Role::Server), to_machine, note, &pulse);
    let outward = outward(
        Writer::new(to_client, Role::Server),
        from_machine,
        notes,
        &pulse,
        manner,
    );
    let mut inward = std::pin::pin!(inward);
    let mut outward = std::pin::pin!(outward);
    let mut is_heard = true;
    loop {
        tokio::select! {
            () = &mut inward, if is_heard => is_heard = false,
            () = &mut outward => break,
        }
    }
    // What the client has sent already still gets there, until it closes, too.
    if is_heard {
        let _ = timeout(LINGER, inward).await;
    }
}

/// From the client to the machine.
async fn inward(
    mut client: Reader<ReadHalf<Upgraded>>,
    mut machine: WriteHalf<Box<dyn Connection>>,
    note: mpsc::Sender<Note>,
    pulse: &Pulse,
) {
    let mut takes = true;
    loop {
        let event = client.next().await;
        pulse.beat();
        let last = match event {
            Ok(Event::Data(bytes)) => {
                if takes {
                    pulse.is_deaf.store(true, Ordering::Relaxed);
                    // It may not take any more and still have something to say.
                    takes = machine.write_all(bytes).await.is_ok() && machine.flush().await.is_ok();
                    pulse.beat();
                    pulse.is_deaf.store(false, Ordering::Relaxed);
                }
                continue;
            }
            Ok(Event::Ping(payload)) => {
                // Of many pings that wait, the last ones need no answer.
                let _ = note.try_send(Note::Pong(payload));
                continue;
            }
            Ok(Event::Pong) => continue,
            Ok(Event::Close(close)) if close.code == code::END_OF_INPUT => {
                takes = false;
                let _ = machine.shutdown().await;
                if note.send(Note::EndOfInput).await.is_err() {
                    return;
                }
                continue;
            }
            Ok(Event::Close(_)) => Note::Close,
            Ok(Event::End) => Note::Gone,
            Err(error) => Note::Wrong(error.code(), error.to_string()),
        };
        // Told first, lest what the machine says to its end be taken for the reason.
        let _ = note.send(last).await;
        let _ = machine.shutdown().await;
        return;
    }
}

/// From the machine to the client.
async fn outward(
    mut client: Writer<WriteHalf<Upgraded>>,
    mut machine: ReadHalf<Box<dyn Connection>>,
    mut notes: mpsc::Receiver<Note>,
    pulse: &Pulse,
    manner: Manner,
) {
    let mut piece = vec![0; PIECE].into_boxed_slice();
    let mut pings = interval(PING.min(manner.silence));
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pings.reset();
    // Since when a client waits that has said everything.
    let mut waits: Option<Instant> = None;
    loop {
        let sent = tokio::select! {
            // What is to be said about the connection is little, and comes before its data.
            biased;
            note = notes.recv() => match note {
                Some(Note::Pong(payload)) => client.pong(&payload).await,
                Some(Note::EndOfInput) => {
                    waits = Some(Instant::now());
                    Ok(())
                }
                Some(Note::Close) => {
                    let _ = client.close(code::NORMAL, "").await;
                    break;
                }
                Some(Note::Wrong(code, why)) => {
                    let _ = client.close(code, &why).await;
                    break;
                }
                Some(Note::Gone) | None => return,
            },
            _ = pings.tick() => match waits {
                Some(since) if since.elapsed() >= LAST_WORDS => break,
                Some(_) => Ok(()),
                None if pulse.silent_for() >= manner.silence => break,
                None => client.ping().await,
            },
            read = machine.read(&mut piece) => match read {
                Ok(0) if manner.hangs_up => break,
                Ok(0) => {
                    let _ = client.close(code::NORMAL, "").await;
                    break;
                }
                Ok(count) => {
                    waits = waits.map(|_| Instant::now());
                    client.data(&piece[..count]).await
                }
                Err(error) => {
                    let _ = client.close(code::FAILED, &format!("the machine broke off: {error}")).await;
                    break;
                }
            },
        };
        if sent.is_err() {
            return;
        }
    }
    // With a word of TLS, lest it look as if somebody had cut it.
    let _ = timeout(LINGER, client.shutdown()).await;
}
